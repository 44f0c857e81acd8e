// Reported faults of encoder-decoders: relative positions in the wrong
// attention, or other ones while generating; requests that share an encoder's
// rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "simd/context.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

class T5Faults : public testing::Test {
 protected:
  void SetUp() override {
    context_ = std::move(Context::Create({})).value();
    auto checkpoint = Checkpoint::Open("tests/data/models/t5");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Model::Load(**checkpoint, *context_, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_NE(model_->encoder(), nullptr);
    Executor::Options options;
    options.activations = ActivationType::kF32;
    encoder_ =
        std::move(Executor::Create(*model_->encoder(), *context_, options))
            .value();
    decoder_ = std::move(Executor::Create(*model_, *context_, options)).value();
    pool_ = KvPagePool::Create(model_->spec(), CacheType::kF32, 1 << 26);
    memory_pool_ =
        KvPagePool::CreateForMemory(model_->spec(), CacheType::kF32, 1 << 26);
  }

  size_t vocab() const { return model_->spec().vocab_size; }
  size_t width() const { return model_->spec().width; }

  static Ids SomeIds(size_t count, int32_t step = 37) {
    Ids ids;
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<int32_t>(3 + (i * step) % 500));
    }
    return ids;
  }

  std::vector<float> Encode(const Ids& ids) {
    std::vector<float> rows(ids.size() * width());
    const Executor::Entry entry{ids, nullptr, Executor::Logits::kNone};
    Executor::Outputs outputs;
    outputs.hidden = rows.data();
    EXPECT_TRUE(encoder_->Forward({&entry, 1}, outputs).ok());
    return rows;
  }

  KvCache Memory(const std::vector<float>& rows) {
    KvCache memory(memory_pool_);
    EXPECT_TRUE(decoder_->FillMemory(rows, &memory).ok());
    return memory;
  }

  // Logits of every position, the ids fed in pieces of `chunk`.
  std::vector<float> Decode(const Ids& ids, const KvCache& memory,
                            size_t chunk) {
    KvCache cache(pool_);
    EXPECT_TRUE(cache.Reserve(ids.size()).ok());
    std::vector<float> logits(ids.size() * vocab());
    for (size_t begin = 0; begin < ids.size(); begin += chunk) {
      const size_t count = std::min(chunk, ids.size() - begin);
      Executor::Entry entry{absl::MakeConstSpan(ids).subspan(begin, count),
                            &cache, Executor::Logits::kAll};
      entry.memory = &memory;
      const absl::Status status =
          decoder_->Forward({&entry, 1}, logits.data() + begin * vocab());
      EXPECT_TRUE(status.ok()) << status;
    }
    return logits;
  }

  std::unique_ptr<Context> context_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> encoder_, decoder_;
  std::shared_ptr<KvPagePool> pool_, memory_pool_;
};

// Without positions of its own, cross-attention does not see in which order
// the encoder's rows come.
TEST_F(T5Faults, M2CrossAttentionHasNoRelativeBias) {
  for (const LayerSpec& layer : model_->spec().layers) {
    EXPECT_TRUE(layer.attention.relative_bias.has_value());
    EXPECT_FALSE(layer.cross->attention.relative_bias.has_value());
  }
  const std::vector<float> rows = Encode(SomeIds(40));
  std::vector<float> reversed;
  for (size_t row = 40; row-- > 0;) {
    reversed.insert(reversed.end(), rows.begin() + row * width(),
                    rows.begin() + (row + 1) * width());
  }
  const Ids ids = SomeIds(9, 41);
  const auto expected = Decode(ids, Memory(rows), 9);
  const auto found = Decode(ids, Memory(reversed), 9);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(expected[i] - found[i]));
  }
  EXPECT_LT(difference, 1e-5f * largest);
  // What the rows are does matter.
  EXPECT_FALSE(Decode(ids, Memory(Encode(SomeIds(40, 43))), 9) == expected);
}

// Longer than the distances that have a bucket of their own, so that every
// bucket is used while generating.
TEST_F(T5Faults, M4GeneratedRowsHaveTheBiasOfOnePass) {
  const KvCache memory = Memory(Encode(SomeIds(12)));
  const Ids ids = SomeIds(200, 29);
  const auto whole = Decode(ids, memory, ids.size());
  EXPECT_TRUE(Decode(ids, memory, 1) == whole);
  EXPECT_TRUE(Decode(ids, memory, 7) == whole);
}

TEST_F(T5Faults, M5RequestsSideBySideReadTheirOwnInput) {
  const Ids inputs[] = {SomeIds(5), SomeIds(90, 31), SomeIds(1)};
  const Ids ids[] = {SomeIds(6, 7), SomeIds(2, 11), SomeIds(9, 13)};
  std::vector<KvCache> memories, caches;
  std::vector<Executor::Entry> batch;
  size_t rows = 0;
  for (int i = 0; i < 3; ++i) {
    memories.push_back(Memory(Encode(inputs[i])));
    caches.emplace_back(pool_);
    ASSERT_TRUE(caches.back().Reserve(ids[i].size()).ok());
    rows += ids[i].size();
  }
  for (int i = 0; i < 3; ++i) {
    batch.push_back({ids[i], &caches[i], Executor::Logits::kAll});
    batch.back().memory = &memories[i];
  }
  std::vector<float> together(rows * vocab());
  ASSERT_TRUE(decoder_->Forward(batch, together.data()).ok());
  const float* begin = together.data();
  for (int i = 0; i < 3; ++i) {
    const auto alone = Decode(ids[i], memories[i], ids[i].size());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), begin)) << i;
    begin += alone.size();
  }
}

// A decoder without the rows it reads is refused, not run on nothing.
TEST_F(T5Faults, M5DecodingWithoutAnEncodersRowsIsRefused) {
  KvCache cache(pool_);
  ASSERT_TRUE(cache.Reserve(4).ok());
  const Ids ids = SomeIds(2);
  std::vector<float> logits(2 * vocab());
  const Executor::Entry entry{ids, &cache, Executor::Logits::kAll};
  EXPECT_EQ(decoder_->Forward({&entry, 1}, logits.data()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.length(), 0u);
}

}  // namespace
}  // namespace lanewise
