#include "model/kv_cache.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

using testing::HasSubstr;

ModelSpec TwoLayers() {
  ModelSpec spec;
  LayerSpec layer;
  layer.attention.heads = layer.attention.kv_heads = 2;
  layer.attention.head_dim = layer.attention.value_dim = 8;
  spec.layers.assign(2, layer);
  return spec;
}

std::shared_ptr<KvPagePool> MakePool(size_t pages) {
  const auto probe = KvPagePool::Create(TwoLayers(), CacheType::kF32, 1);
  return KvPagePool::Create(TwoLayers(), CacheType::kF32,
                            pages * probe->page_bytes());
}

class KvCacheForkTest : public testing::Test {
 protected:
  // Appends positions the way the executor does: the byte of position p in
  // every layer's part of its page becomes `value`.
  void Append(KvCache* cache, size_t count, uint8_t value) {
    ASSERT_LE(cache->length() + count, cache->capacity());
    for (size_t layer = 0; layer < 2; ++layer) {
      const KvPages kv = cache->layer(layer);
      for (size_t p = cache->length(); p < cache->length() + count; ++p) {
        kv.pages[p / 64][kv.offset + p % 64] = value;
      }
    }
    cache->Advance(count);
  }

  void Grow(KvCache* cache, size_t count, uint8_t value) {
    ASSERT_TRUE(cache->Reserve(cache->length() + count).ok());
    Append(cache, count, value);
  }

  static std::string Contents(const KvCache& cache, size_t layer = 1) {
    const KvPages kv = cache.layer(layer);
    std::string out;
    for (size_t p = 0; p < cache.length(); ++p) {
      out += static_cast<char>(kv.pages[p / 64][kv.offset + p % 64]);
    }
    return out;
  }

  std::shared_ptr<KvPagePool> pool_ = MakePool(8);
  KvCache cache_{pool_};
};

TEST_F(KvCacheForkTest, SharesAllPagesUntilSomebodyWrites) {
  Grow(&cache_, 130, 'p');
  EXPECT_EQ(pool_->pages_in_use(), 3u);
  EXPECT_EQ(cache_.shared_pages(), 0u);
  KvCache fork = cache_.Fork();
  EXPECT_EQ(fork.length(), 130u);
  EXPECT_EQ(pool_->pages_in_use(), 3u);
  EXPECT_EQ(cache_.shared_pages(), 3u);
  EXPECT_EQ(fork.shared_pages(), 3u);
  EXPECT_EQ(Contents(fork), Contents(cache_));

  Grow(&fork, 1, 'f');  // copies the last page only
  EXPECT_EQ(pool_->pages_in_use(), 4u);
  EXPECT_EQ(fork.shared_pages(), 2u);
  EXPECT_EQ(cache_.shared_pages(), 2u);
  const uint8_t* last = cache_.layer(0).pages[2];
  Grow(&cache_, 1, 'c');  // alone with its last page: writes in place
  EXPECT_EQ(pool_->pages_in_use(), 4u);
  EXPECT_EQ(cache_.layer(0).pages[2], last);
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(Contents(fork, layer), std::string(130, 'p') + 'f');
    EXPECT_EQ(Contents(cache_, layer), std::string(130, 'p') + 'c');
  }
}

TEST_F(KvCacheForkTest, NothingIsCopiedAtAPageBoundary) {
  Grow(&cache_, 128, 'p');
  KvCache fork = cache_.Fork();
  Grow(&fork, 1, 'f');
  Grow(&cache_, 1, 'c');
  EXPECT_EQ(pool_->pages_in_use(), 4u);
  EXPECT_EQ(fork.shared_pages(), 2u);
  EXPECT_EQ(Contents(fork), std::string(128, 'p') + 'f');
  EXPECT_EQ(Contents(cache_), std::string(128, 'p') + 'c');
}

TEST_F(KvCacheForkTest, SharedPagesGiveNoCapacityBeforeReserve) {
  ASSERT_TRUE(cache_.Reserve(200).ok());
  Append(&cache_, 70, 'p');
  EXPECT_EQ(cache_.capacity(), 256u);
  KvCache fork = cache_.Fork();
  EXPECT_EQ(fork.capacity(), 70u);
  EXPECT_EQ(cache_.capacity(), 70u);
  ASSERT_TRUE(fork.Reserve(70).ok());  // even for no new position
  EXPECT_EQ(fork.capacity(), 128u);
  EXPECT_EQ(cache_.capacity(), 70u);
  ASSERT_TRUE(cache_.Reserve(71).ok());
  EXPECT_EQ(cache_.capacity(), 256u);
}

TEST_F(KvCacheForkTest, RollbackIntoSharedPagesLeavesTheOthersAsTheyWere) {
  Grow(&cache_, 150, 'p');
  KvCache fork = cache_.Fork();
  fork.Truncate(20);
  EXPECT_EQ(fork.capacity(), 20u);
  EXPECT_EQ(cache_.shared_pages(), 1u);
  Grow(&fork, 50, 'f');
  EXPECT_EQ(Contents(fork), std::string(20, 'p') + std::string(50, 'f'));
  EXPECT_EQ(Contents(cache_), std::string(150, 'p'));
  EXPECT_EQ(fork.shared_pages(), 0u);
  cache_.Truncate(0);
  EXPECT_EQ(pool_->pages_in_use(), 2u);
}

TEST_F(KvCacheForkTest, RollbackToAPageBoundaryNeedsNoCopy) {
  Grow(&cache_, 100, 'p');
  KvCache fork = cache_.Fork();
  fork.Truncate(64);
  Grow(&fork, 1, 'f');
  EXPECT_EQ(pool_->pages_in_use(), 3u);
  EXPECT_EQ(Contents(fork), std::string(64, 'p') + 'f');
  EXPECT_EQ(Contents(cache_), std::string(100, 'p'));
}

TEST_F(KvCacheForkTest, PagesLiveAsLongAsTheLastCacheThatHasThem) {
  {
    KvCache fork(pool_);
    {
      KvCache parent(pool_);
      Grow(&parent, 65, 'p');
      fork = parent.Fork();
    }
    EXPECT_EQ(pool_->pages_in_use(), 2u);
    EXPECT_EQ(fork.shared_pages(), 0u);
    const KvCache grandchild = fork.Fork();
    fork.Truncate(0);
    EXPECT_EQ(Contents(grandchild), std::string(65, 'p'));
    EXPECT_EQ(pool_->pages_in_use(), 2u);
  }
  EXPECT_EQ(pool_->pages_in_use(), 0u);
}

TEST_F(KvCacheForkTest, ForkOfAnEmptyCacheIsEmpty) {
  ASSERT_TRUE(cache_.Reserve(64).ok());
  KvCache fork = cache_.Fork();
  EXPECT_EQ(fork.capacity(), 0u);
  EXPECT_EQ(cache_.capacity(), 64u);
  Grow(&fork, 1, 'f');
  EXPECT_EQ(pool_->pages_in_use(), 2u);
}

TEST_F(KvCacheForkTest, MovedCachesKeepWhatTheyShare) {
  Grow(&cache_, 10, 'p');
  KvCache fork = cache_.Fork();
  KvCache moved = std::move(fork);
  EXPECT_EQ(moved.capacity(), 10u);
  EXPECT_EQ(moved.shared_pages(), 1u);
  Grow(&moved, 1, 'm');
  EXPECT_EQ(Contents(cache_), std::string(10, 'p'));
  EXPECT_EQ(Contents(moved), std::string(10, 'p') + 'm');
}

TEST_F(KvCacheForkTest, ExhaustionLeavesEverythingAsItWas) {
  Grow(&cache_, 65, 'p');
  KvCache fork = cache_.Fork();
  KvCache rest(pool_);
  ASSERT_TRUE(rest.Reserve(5 * 64).ok());
  EXPECT_EQ(pool_->pages_in_use(), 7u);
  // One page for the copy, one more that is not there.
  const absl::Status full = fork.Reserve(129);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("all 8 pages"));
  EXPECT_EQ(pool_->pages_in_use(), 7u);
  EXPECT_EQ(fork.shared_pages(), 2u);
  EXPECT_EQ(fork.capacity(), 65u);
  EXPECT_EQ(Contents(fork), Contents(cache_));
  Grow(&fork, 1, 'f');
  EXPECT_EQ(pool_->pages_in_use(), 8u);
  EXPECT_EQ(Contents(cache_), std::string(65, 'p'));
}

TEST_F(KvCacheForkTest, MorePositionsThanAnyPoolHoldsAreRefused) {
  for (const size_t positions :
       {size_t{8 * 64 + 1}, std::numeric_limits<size_t>::max()}) {
    const absl::Status status = cache_.Reserve(positions);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the 8 there are"));
  }
  EXPECT_EQ(pool_->pages_in_use(), 0u);
}

TEST_F(KvCacheForkTest, ReferencesAreCountedPerPage) {
  Grow(&cache_, 70, 'p');
  KvCache a = cache_.Fork(), b = a.Fork();
  const auto references = [&](size_t page) {
    return pool_->references(cache_.layer(0).pages[page]);
  };
  EXPECT_EQ(references(0), 3u);
  EXPECT_EQ(references(1), 3u);
  Grow(&b, 1, 'b');
  EXPECT_EQ(references(0), 3u);
  EXPECT_EQ(references(1), 2u);
  a.Truncate(0);
  EXPECT_EQ(references(0), 2u);
  EXPECT_EQ(references(1), 1u);
}

// A tree of forks by a random walk, against strings that are simply copied.
TEST_F(KvCacheForkTest, A5RandomForksHoldWhatTheirParentsHeld) {
  pool_ = MakePool(200);
  std::vector<KvCache> caches;
  std::vector<std::string> expected(1);
  caches.emplace_back(pool_);
  uint64_t state = 1;
  const auto random = [&state](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  for (int step = 0; step < 3000; ++step) {
    const size_t i = random(caches.size());
    const size_t action = random(8);
    if (action == 0 && caches.size() < 12) {
      caches.push_back(caches[i].Fork());
      expected.push_back(expected[i]);
    } else if (action == 1) {
      const size_t length = random(expected[i].size() + 1);
      caches[i].Truncate(length);
      expected[i].resize(length);
    } else if (action == 2 && caches.size() > 1) {
      caches.erase(caches.begin() + i);
      expected.erase(expected.begin() + i);
    } else if (expected[i].size() < 500) {
      const size_t count = 1 + random(70);
      const char value = static_cast<char>('a' + random(26));
      Grow(&caches[i], count, value);
      expected[i].append(count, value);
    }
  }
  for (size_t i = 0; i < caches.size(); ++i) {
    EXPECT_EQ(Contents(caches[i]), expected[i]) << i;
  }
  caches.clear();
  EXPECT_EQ(pool_->pages_in_use(), 0u);
}

TEST_F(KvCacheForkTest, ThreadsGrowForksOfOneCache) {
  pool_ = MakePool(200);
  KvCache root(pool_);
  Grow(&root, 100, 'p');
  std::vector<KvCache> forks;
  for (int i = 0; i < 4; ++i) forks.push_back(root.Fork());
  root.Truncate(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, &forks, i] {
      for (int j = 0; j < 50; ++j) {
        KvCache branch = forks[i].Fork();
        Grow(&branch, 3, static_cast<uint8_t>('0' + i));
        forks[i] = std::move(branch);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Contents(forks[i]),
              std::string(100, 'p') + std::string(150, '0' + i));
    forks[i].Truncate(0);
  }
  EXPECT_EQ(pool_->pages_in_use(), 0u);
}

}  // namespace
}  // namespace lanewise
