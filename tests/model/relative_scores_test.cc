// The terms of relative positions in disentangled attention, against a scalar
// reference.
#include "model/relative_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/disentangled.h"
#include "model/position_tables.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr size_t kWidth = 7, kHeads = 2, kHeadDim = 5, kSpan = 6;
constexpr size_t kProjected = kHeads * kHeadDim;

Projection MakeProjection(const Context& context,
                          const std::vector<float>& weight,
                          std::vector<float> bias) {
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; row < weight.size() / kWidth; ++row) {
    rows.push_back(
        reinterpret_cast<const uint8_t*>(weight.data() + row * kWidth));
  }
  Projection projection;
  projection.parts.push_back(
      std::move(Pack(context, DType::kF32, kWidth, rows)).value());
  projection.bias = std::move(bias);
  return projection;
}

// A model of one layer with all numbers at hand.
struct Case {
  explicit Case(const DisentangledSpec& disentangled) {
    LayerSpec layer;
    layer.attention.heads = layer.attention.kv_heads = kHeads;
    layer.attention.head_dim = layer.attention.value_dim = kHeadDim;
    layer.attention.causal = false;
    layer.attention.scale = 0.375f;
    layer.attention.disentangled = disentangled;
    spec.width = kWidth;
    spec.layers.push_back(layer);
    TestRandom random(7);
    table = random.Uniforms(2 * kSpan * kWidth);
    qkv = random.Uniforms(3 * kProjected * kWidth);
    qkv_bias = random.Uniforms(3 * kProjected);
    key = random.Uniforms(kProjected * kWidth);
    query = random.Uniforms(kProjected * kWidth);
    query_bias = random.Uniforms(kProjected);
  }

  const DisentangledSpec& disentangled() const {
    return *spec.layers.front().attention.disentangled;
  }

  Weights Pack(const Context& context) const {
    Weights weights;
    weights.relative_embedding = table;
    weights.layers.resize(1);
    LayerWeights& layer = weights.layers.front();
    layer.qkv = MakeProjection(context, qkv, qkv_bias);
    if (!disentangled().shared_projections) {
      layer.relative_key = MakeProjection(context, key, {});
      layer.relative_query = MakeProjection(context, query, query_bias);
    }
    return weights;
  }

  // Column `n` of table row `row` behind a matrix.
  float Projected(const std::vector<float>& matrix,
                  const std::vector<float>& bias, size_t row, size_t n) const {
    float sum = 0.0f;
    for (size_t k = 0; k < kWidth; ++k) {
      sum = std::fma(table[row * kWidth + k], matrix[n * kWidth + k], sum);
    }
    return bias.empty() ? sum : sum + bias[n];
  }
  float RelativeKey(size_t row, size_t n) const {
    return disentangled().shared_projections
               ? Projected(qkv, qkv_bias, row, kProjected + n)
               : Projected(key, {}, row, n);
  }
  float RelativeQuery(size_t row, size_t n) const {
    return disentangled().shared_projections
               ? Projected(qkv, qkv_bias, row, n)
               : Projected(query, query_bias, row, n);
  }

  // What is added for query row `i` and key row `j`, `distance` apart, where
  // rows hold queries, then keys.
  float Bias(const std::vector<float>& rows, size_t stride, size_t head,
             size_t i, size_t j, int64_t distance) const {
    const int64_t bucket =
        disentangled().buckets > 0
            ? LogBucket(distance, static_cast<int64_t>(disentangled().buckets),
                        static_cast<int64_t>(disentangled().max_distance))
            : distance;
    const auto at = static_cast<size_t>(std::clamp<int64_t>(
        bucket + static_cast<int64_t>(kSpan), 0, 2 * kSpan - 1));
    float by_key = 0.0f, by_query = 0.0f;
    for (size_t d = 0; d < kHeadDim; ++d) {
      const size_t n = head * kHeadDim + d;
      by_key = std::fma(rows[i * stride + n], RelativeKey(at, n), by_key);
      by_query = std::fma(rows[j * stride + kProjected + n],
                          RelativeQuery(at, n), by_query);
    }
    const float scale = spec.layers.front().attention.scale;
    const bool keys = disentangled().relative_keys;
    const bool queries = disentangled().relative_queries;
    return (keys ? by_key * scale : 0.0f) + (queries ? by_query * scale : 0.0f);
  }

  ModelSpec spec;
  std::vector<float> table, qkv, qkv_bias, key, query, query_bias;
};

DisentangledSpec Terms(bool keys, bool queries, bool shared, size_t buckets) {
  DisentangledSpec spec;
  spec.span = kSpan;
  spec.buckets = buckets;
  spec.max_distance = buckets > 0 ? 40 : kSpan;
  spec.relative_keys = keys;
  spec.relative_queries = queries;
  spec.shared_projections = shared;
  return spec;
}

// Two sequences of a batch, the second over two tiles.
void ExpectReference(const DisentangledSpec& terms) {
  const Case model(terms);
  const size_t lengths[] = {3, 70};
  const size_t stride = 3 * kProjected + 1, total = 73;
  const std::vector<float> rows = TestRandom(11).Uniforms(total * stride);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target, 2);
    const Weights weights = model.Pack(*context);
    const auto positions =
        ProjectRelativePositions(model.spec, weights, *context);
    ASSERT_TRUE(positions.ok()) << positions.status();
    std::vector<AttentionSequence> sequences(2);
    for (size_t s = 0; s < 2; ++s) {
      sequences[s].q = rows.data() + (s == 0 ? 0 : lengths[0]) * stride;
      sequences[s].q_stride = stride;
      sequences[s].rows = sequences[s].keys = lengths[s];
    }
    Activations activations;
    ASSERT_TRUE(activations.Reserve(total, kProjected).ok());
    RelativeScores scores;
    ASSERT_TRUE(scores.Reserve(model.spec, total).ok());
    scores.Compute(*context, model.spec.layers.front().attention, *positions,
                   positions->projections.front(), {rows.data(), stride, total},
                   sequences, &activations);
    size_t first = 0;
    for (size_t s = 0; s < 2; ++s) {
      for (size_t i = 0; i < lengths[s]; ++i) {
        for (size_t head = 0; head < kHeads; ++head) {
          for (size_t tile = 0; tile < lengths[s]; tile += kKeysPerPage) {
            float bias[kKeysPerPage];
            scores.Fill(s, head, i, tile, bias);
            for (size_t j = 0; j < kKeysPerPage && tile + j < lengths[s]; ++j) {
              const float expected = model.Bias(
                  rows, stride, head, first + i, first + tile + j,
                  static_cast<int64_t>(i) - static_cast<int64_t>(tile + j));
              if (target.has_fma()) {
                ASSERT_EQ(bias[j], expected) << s << " " << i << " " << j;
              } else {
                ASSERT_NEAR(bias[j], expected, 1e-5f) << i << " " << j;
              }
            }
          }
        }
      }
      first += lengths[s];
    }
  });
}

TEST(RelativeScores, BothTermsBySharedProjections) {
  ExpectReference(Terms(true, true, true, 0));
}
TEST(RelativeScores, BothTermsByTheirOwnProjections) {
  ExpectReference(Terms(true, true, false, 0));
}
TEST(RelativeScores, InBuckets) {
  ExpectReference(Terms(true, true, false, kSpan));
}
TEST(RelativeScores, KeysOnly) {
  ExpectReference(Terms(true, false, true, kSpan));
}
TEST(RelativeScores, QueriesOnly) {
  ExpectReference(Terms(false, true, false, 0));
}

TEST(RelativePositions, RowsOfDistancesInBuckets) {
  DisentangledSpec terms;
  terms.span = terms.buckets = 8;
  terms.max_distance = 32;
  terms.relative_keys = true;
  Case model(terms);
  model.table = TestRandom(3).Uniforms(2 * terms.span * kWidth);
  const auto context = MakeContext(Target::Best());
  const auto positions =
      ProjectRelativePositions(model.spec, model.Pack(*context), *context);
  ASSERT_TRUE(positions.ok()) << positions.status();
  EXPECT_TRUE(positions->projections.front().queries.empty());
  const auto row = [&](int64_t distance) {
    const int64_t far = positions->far();
    return positions
        ->rows[static_cast<size_t>(std::clamp(distance, -far, far) + far)];
  };
  // distance, row; by the paper's formula.
  const std::pair<int64_t, uint32_t> expected[] = {
      {-40, 0}, {-33, 0}, {-32, 0}, {-31, 1}, {-20, 1}, {-9, 2},  {-8, 2},
      {-5, 3},  {-4, 4},  {0, 8},   {1, 9},   {4, 12},  {5, 13},  {6, 13},
      {8, 14},  {12, 14}, {20, 15}, {30, 15}, {31, 15}, {32, 15}, {40, 15}};
  for (const auto& [distance, at] : expected) {
    EXPECT_EQ(row(distance), at) << distance;
  }
}

TEST(RelativePositions, NoneWithoutDisentangledAttention) {
  Case model(Terms(true, true, true, 0));
  const auto context = MakeContext(Target::Best());
  const Weights weights = model.Pack(*context);
  model.spec.layers.front().attention.disentangled.reset();
  const auto positions =
      ProjectRelativePositions(model.spec, weights, *context);
  ASSERT_TRUE(positions.ok()) << positions.status();
  EXPECT_TRUE(positions->rows.empty());
  EXPECT_TRUE(positions->projections.empty());
}

}  // namespace
}  // namespace lanewise
