#include "model/attention_map.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"

namespace lanewise {
namespace {

constexpr size_t kHeads = 4, kKvHeads = 2, kDim = 12, kValueDim = 10;

// Queries, keys and values of one sequence, and what attention makes of them.
struct Sample {
  Sample(const Context& context, CacheType type, size_t num_rows,
         size_t num_keys)
      : rows(num_rows), keys(num_keys) {
    ModelSpec spec;
    LayerSpec layer;
    layer.attention.heads = kHeads;
    layer.attention.kv_heads = kKvHeads;
    layer.attention.head_dim = kDim;
    layer.attention.value_dim = kValueDim;
    spec.layers = {layer};
    pool = KvPagePool::Create(spec, type, size_t{1} << 26);
    cache = std::make_unique<KvCache>(pool);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> value(-2.0f, 2.0f);
    const auto fill = [&](std::vector<float>* values, size_t n) {
      values->resize(n);
      for (float& x : *values) x = std::floor(value(random) * 8.0f) / 8.0f;
    };
    fill(&q, rows * kHeads * kDim);
    fill(&k, keys * kKvHeads * kDim);
    fill(&v, keys * kKvHeads * kValueDim);
    EXPECT_TRUE(cache->Reserve(keys).ok());
    params.heads = kHeads;
    params.kv = pool->layer_shape(0);
    params.scale = 0.3f;
    StoreKv(context, params.kv, cache->layer(0), 0, keys, k.data(),
            kKvHeads * kDim, v.data(), kKvHeads * kValueDim);
    out.resize(rows * kHeads * kValueDim);
    sequence = {q.data(), kHeads * kDim, out.data(), kHeads * kValueDim,
                rows,     keys - rows,   keys,       cache->layer(0)};
  }

  size_t rows, keys;
  std::shared_ptr<KvPagePool> pool;
  std::unique_ptr<KvCache> cache;
  std::vector<float> q, k, v, out;
  AttentionParams params{};
  AttentionSequence sequence;
};

// The weights explain what attention gives, row by row; masked keys have none.
void Check(const Context& context, Sample* sample, double sum_of_weights) {
  auto weights = AttentionWeights(context, sample->params, sample->sequence);
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_EQ(weights->size(), kHeads * sample->rows * sample->keys);
  std::vector<float> scratch(
      AttentionScratchFloats(context, sample->params, {&sample->sequence, 1}) +
      16);
  auto aligned = reinterpret_cast<float*>(
      (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  Attention(context, sample->params, {&sample->sequence, 1}, aligned);
  for (size_t head = 0; head < kHeads; ++head) {
    for (size_t row = 0; row < sample->rows; ++row) {
      const float* w =
          weights->data() + (head * sample->rows + row) * sample->keys;
      const size_t position = sample->sequence.position + row;
      double sum = 0;
      std::vector<double> expected(kValueDim, 0.0);
      for (size_t key = 0; key < sample->keys; ++key) {
        const bool seen = (!sample->params.causal || key <= position) &&
                          (sample->params.window == 0 ||
                           key + sample->params.window > position);
        if (!seen) {
          EXPECT_EQ(w[key], 0.0f);
        } else {
          EXPECT_GT(w[key], 0.0f);
        }
        sum += w[key];
        const float* v =
            sample->v.data() + (key * kKvHeads + head / 2) * kValueDim;
        for (size_t d = 0; d < kValueDim; ++d) {
          expected[d] += double{w[key]} * double{v[d]};
        }
      }
      if (sum_of_weights > 0) {
        EXPECT_NEAR(sum, sum_of_weights, 1e-5);
      } else {
        EXPECT_LT(sum, 1.0 - 1e-3);  // a sink takes its part
      }
      const float* out = sample->out.data() + (row * kHeads + head) * kValueDim;
      for (size_t d = 0; d < kValueDim; ++d) {
        EXPECT_NEAR(out[d], expected[d], 1e-5);
      }
    }
  }
}

TEST(AttentionMap, ExplainsWhatAttentionGives) {
  const auto context = std::move(Context::Create({})).value();
  for (const CacheType type :
       {CacheType::kF32, CacheType::kF16, CacheType::kBF16}) {
    for (const auto& [rows, keys] :
         {std::pair<size_t, size_t>{1, 1}, {5, 5}, {3, 70}, {7, 1100}}) {
      Sample sample(*context, type, rows, keys);
      Check(*context, &sample, 1.0);
      sample.params.window = 3;
      Check(*context, &sample, 1.0);
      sample.params.window = 0;
      sample.params.softcap = 1.5f;
      Check(*context, &sample, 1.0);
      sample.params.causal = false;
      Check(*context, &sample, 1.0);
      const std::vector<float> sinks(kHeads, 1.0f);
      sample.params.sinks = sinks.data();
      Check(*context, &sample, -1.0);
    }
  }
}

TEST(AttentionMap, TooManyKeysAreAnError) {
  const auto context = std::move(Context::Create({})).value();
  Sample sample(*context, CacheType::kF32, 1, kMaxMappedKeys + 1);
  EXPECT_EQ(AttentionWeights(*context, sample.params, sample.sequence)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

// Of a model: chosen layers and heads, in ascending order; logits are those of
// a run without a recorder.
TEST(AttentionMap, RecordsChosenLayersAndHeads) {
  const auto context = std::move(Context::Create({})).value();
  auto checkpoint = Checkpoint::Open("tests/data/models/bert");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto model = Model::Load(**checkpoint, *context, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const size_t width = (*model)->spec().width;
  const std::vector<int32_t> ids = {3, 5, 8, 13, 21};
  std::vector<float> plain(ids.size() * width), watched(ids.size() * width);
  const auto run = [&](Executor::Options options, std::vector<float>* hidden) {
    auto executor = Executor::Create(**model, *context, std::move(options));
    ASSERT_TRUE(executor.ok());
    Executor::Entry entry;
    entry.ids = ids;
    Executor::Outputs outputs;
    outputs.hidden = hidden->data();
    ASSERT_TRUE((*executor)->Forward({&entry, 1}, outputs).ok());
  };
  run({}, &plain);
  AttentionMapRecorder recorder(*context, {{0, 2}, {1, 3}});
  Executor::Options options;
  options.attention_observer = recorder.observer();
  run(options, &watched);
  EXPECT_EQ(plain, watched);
  ASSERT_TRUE(recorder.status().ok());
  ASSERT_EQ(recorder.maps().size(), 2u);
  EXPECT_EQ(recorder.maps()[0].layer, 0u);
  EXPECT_EQ(recorder.maps()[1].layer, 2u);
  for (const AttentionMap& map : recorder.maps()) {
    EXPECT_FALSE(map.cross);
    EXPECT_EQ(map.heads, (std::vector<size_t>{1, 3}));
    EXPECT_EQ(map.rows, ids.size());
    EXPECT_EQ(map.keys, ids.size());
    ASSERT_EQ(map.weights.size(), 2 * ids.size() * ids.size());
    for (size_t row = 0; row < 2 * ids.size(); ++row) {
      double sum = 0;
      for (size_t key = 0; key < ids.size(); ++key) {
        sum += map.weights[row * ids.size() + key];
      }
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

}  // namespace
}  // namespace lanewise
