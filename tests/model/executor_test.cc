#include "model/executor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

class ExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = std::move(Context::Create({})).value();
    auto checkpoint = Checkpoint::Open("tests/data/models/llama");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Model::Load(**checkpoint, *context_, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    Executor::Options options;
    options.max_rows = 32;
    auto executor = Executor::Create(*model_, *context_, options);
    ASSERT_TRUE(executor.ok());
    executor_ = *std::move(executor);
    pool_ = KvPagePool::Create(model_->spec(), CacheType::kF16, 1 << 24);
  }

  absl::Status Run(KvCache* cache, const Ids& ids, std::vector<float>* logits,
                   Executor::Logits wanted = Executor::Logits::kLast) {
    logits->assign(ids.size() * model_->spec().vocab_size, 0.0f);
    const Executor::Entry entry{ids, cache, wanted};
    return executor_->Forward({&entry, 1}, logits->data());
  }

  std::unique_ptr<Context> context_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<KvPagePool> pool_;
};

TEST_F(ExecutorTest, RollbackAndRecomputeGiveTheSameBits) {
  KvCache cache(pool_);
  ASSERT_TRUE(cache.Reserve(64).ok());
  std::vector<float> first, second;
  ASSERT_TRUE(Run(&cache, {5, 6, 7, 8, 9}, &first).ok());
  EXPECT_EQ(cache.length(), 5u);
  cache.Truncate(2);
  ASSERT_TRUE(cache.Reserve(64).ok());
  ASSERT_TRUE(Run(&cache, {100, 101}, &second).ok());
  cache.Truncate(2);
  ASSERT_TRUE(cache.Reserve(64).ok());
  ASSERT_TRUE(Run(&cache, {7, 8, 9}, &second).ok());
  const size_t bytes = model_->spec().vocab_size * sizeof(float);
  EXPECT_EQ(std::memcmp(first.data(), second.data(), bytes), 0);
}

TEST_F(ExecutorTest, IdsOutsideTheVocabularyChangeNothing) {
  KvCache cache(pool_);
  ASSERT_TRUE(cache.Reserve(8).ok());
  std::vector<float> logits;
  for (const int32_t bad : {-1, 560, INT32_MAX, INT32_MIN}) {
    const absl::Status status = Run(&cache, {1, bad}, &logits);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("0 to 559"));
    EXPECT_EQ(cache.length(), 0u);
  }
}

TEST_F(ExecutorTest, PositionsBeyondTheModelAreOutOfRange) {
  KvCache cache(pool_);
  ASSERT_TRUE(cache.Reserve(256).ok());
  std::vector<float> logits;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Run(&cache, Ids(32, 7), &logits).ok());
  }
  const absl::Status status = Run(&cache, {7}, &logits);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("128"));
}

TEST_F(ExecutorTest, CacheWithoutRoomIsOutOfRange) {
  KvCache cache(pool_);
  std::vector<float> logits;
  EXPECT_EQ(Run(&cache, {7}, &logits).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ExecutorTest, MoreRowsThanReservedIsInvalid) {
  KvCache cache(pool_);
  ASSERT_TRUE(cache.Reserve(64).ok());
  std::vector<float> logits;
  EXPECT_EQ(Run(&cache, Ids(33, 1), &logits).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ExecutorTest, EmptyBatchAndEmptyEntryDoNothing) {
  EXPECT_TRUE(executor_->Forward({}, nullptr).ok());
  KvCache cache(pool_);
  std::vector<float> logits;
  EXPECT_TRUE(Run(&cache, {}, &logits).ok());
  EXPECT_EQ(cache.length(), 0u);
}

TEST_F(ExecutorTest, LogitsOfNoneOneAndAllAgree) {
  const size_t vocab = model_->spec().vocab_size;
  std::vector<float> all, last;
  KvCache first(pool_), second(pool_), third(pool_);
  for (KvCache* cache : {&first, &second, &third}) {
    ASSERT_TRUE(cache->Reserve(8).ok());
  }
  ASSERT_TRUE(Run(&first, {9, 8, 7}, &all, Executor::Logits::kAll).ok());
  ASSERT_TRUE(Run(&second, {9, 8}, &last, Executor::Logits::kNone).ok());
  ASSERT_TRUE(Run(&second, {7}, &last).ok());
  EXPECT_EQ(
      std::memcmp(all.data() + 2 * vocab, last.data(), vocab * sizeof(float)),
      0);
  ASSERT_TRUE(Run(&third, {9, 8, 7}, &last).ok());
  EXPECT_EQ(
      std::memcmp(all.data() + 2 * vocab, last.data(), vocab * sizeof(float)),
      0);
}

// The last logits of a model with mixtures of experts whose routers have this
// bias and do not look at the row.
std::vector<float> LogitsOfRouter(const std::vector<float>& bias) {
  ModelFolder folder("gpt_oss");
  for (int layer = 0; layer < 3; ++layer) {
    const std::string router =
        "model.layers." + std::to_string(layer) + ".mlp.router.";
    folder.EditValues(router + "weight", [](size_t) { return 0.0f; });
    folder.EditValues(router + "bias", [&](size_t i) { return bias[i]; });
  }
  const auto context = std::move(Context::Create({})).value();
  auto checkpoint = Checkpoint::Open(folder.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto model = Model::Load(**checkpoint, *context, {});
  EXPECT_TRUE(model.ok()) << model.status();
  const auto executor =
      std::move(Executor::Create(**model, *context, {})).value();
  KvCache cache(KvPagePool::Create((*model)->spec(), CacheType::kF32, 1 << 24));
  EXPECT_TRUE(cache.Reserve(8).ok());
  std::vector<float> logits((*model)->spec().vocab_size);
  const Ids ids = {3, 5, 8};
  const Executor::Entry entry{ids, &cache, Executor::Logits::kLast};
  EXPECT_TRUE(executor->Forward({&entry, 1}, logits.data()).ok());
  return logits;
}

TEST(MixtureOfExperts, TiesGoToTheLowerExpert) {
  const auto first_two = LogitsOfRouter({1, 1, -9, -9, -9});
  EXPECT_EQ(LogitsOfRouter({1, 1, 1, 1, 1}), first_two);
  EXPECT_NE(LogitsOfRouter({1, -9, 1, 1, 1}), first_two);
  EXPECT_EQ(LogitsOfRouter({1, -9, 1, 1, 1}),
            LogitsOfRouter({1, -9, 1, -9, -9}));
}

TEST(MixtureOfExperts, WeightsAreTheSoftmaxOfTheChosen) {
  // The same difference of two logits, whatever the others are.
  EXPECT_EQ(LogitsOfRouter({2, -9, -9, 1, -9}),
            LogitsOfRouter({4, 2, 2, 3, 2}));
  EXPECT_NE(LogitsOfRouter({2, -9, -9, 1, -9}),
            LogitsOfRouter({2, -9, -9, 0, -9}));
}

TEST(MixtureOfExperts, NanInARouterIsNoCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float logit : LogitsOfRouter({nan, 1, nan, 1, 1})) {
    if (!std::isfinite(logit)) return;  // as a caller finds out
  }
  ADD_FAILURE() << "all logits are finite";
}

// RoPE that depends on the length: rows of a prompt have the frequencies of the
// whole prompt, whatever chunks it comes in; later rows those of their own.
class DynamicRopeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.EditJson("config.json", [](auto& json) {
      json["max_position_embeddings"] = 8;
      json["rope_parameters"] = {
          {"rope_type", "dynamic"}, {"rope_theta", 1e4}, {"factor", 2.0}};
    });
    context_ = std::move(Context::Create({})).value();
    auto checkpoint = Checkpoint::Open(folder_.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Model::Load(**checkpoint, *context_, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    executor_ = std::move(Executor::Create(*model_, *context_, {})).value();
    pool_ = KvPagePool::Create(model_->spec(), CacheType::kF32, 1 << 24);
    for (int i = 0; i < 20; ++i) ids_.push_back(3 + 7 * i);
  }

  // The last logits of ids_ in pieces that end at `ends`; `prompt_length` 0:
  // each piece counts as a prompt of its own.
  std::vector<float> Run(const std::vector<size_t>& ends,
                         size_t prompt_length) {
    KvCache cache(pool_);
    EXPECT_TRUE(cache.Reserve(ids_.size()).ok());
    std::vector<float> logits(model_->spec().vocab_size);
    for (const size_t end : ends) {
      const size_t begin = cache.length();
      const Executor::Entry entry{
          absl::MakeConstSpan(ids_).subspan(begin, end - begin), &cache,
          Executor::Logits::kLast, prompt_length};
      EXPECT_TRUE(executor_->Forward({&entry, 1}, logits.data()).ok());
    }
    return logits;
  }

  ModelFolder folder_{"llama"};
  std::unique_ptr<Context> context_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<KvPagePool> pool_;
  Ids ids_;
};

TEST_F(DynamicRopeTest, ChunksOfAPromptGiveTheBitsOfTheWhole) {
  const auto whole = Run({20}, 0);
  EXPECT_EQ(Run({7, 12, 20}, 20), whole);
  EXPECT_EQ(Run({20}, 20), whole);
  EXPECT_NE(Run({7, 12, 20}, 0), whole);
}

TEST_F(DynamicRopeTest, GeneratedRowsHaveTheirOwnLength) {
  const auto one_by_one = Run({18, 19, 20}, 18);
  EXPECT_EQ(Run({18, 19, 20}, 0), one_by_one);
  EXPECT_EQ(Run({18, 20}, 18), one_by_one);  // two rows at once
  EXPECT_NE(Run({20}, 0), one_by_one);
}

TEST(KvCacheTest, PagesComeFromThePoolAndGoBack) {
  ModelSpec spec;
  LayerSpec layer;
  layer.attention.heads = layer.attention.kv_heads = 2;
  layer.attention.head_dim = layer.attention.value_dim = 8;
  spec.layers.assign(2, layer);
  const auto probe = KvPagePool::Create(spec, CacheType::kF32, 1);
  EXPECT_EQ(probe->page_bytes(), 2u * 2 * 64 * (8 + 8) * 4);
  const auto pool =
      KvPagePool::Create(spec, CacheType::kF32, 3 * probe->page_bytes());
  {
    KvCache cache(pool);
    ASSERT_TRUE(cache.Reserve(65).ok());
    EXPECT_EQ(pool->pages_in_use(), 2u);
    EXPECT_EQ(cache.capacity(), 128u);
    KvCache other(pool);
    ASSERT_TRUE(other.Reserve(1).ok());
    const absl::Status full = other.Reserve(65);
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(other.capacity(), 64u);
    cache.Advance(64);
    cache.Truncate(64);
    EXPECT_EQ(pool->pages_in_use(), 2u);
    EXPECT_TRUE(other.Reserve(65).ok());
    KvCache moved = std::move(other);
    EXPECT_EQ(moved.capacity(), 128u);
  }
  EXPECT_EQ(pool->pages_in_use(), 0u);
}

}  // namespace
}  // namespace lanewise
