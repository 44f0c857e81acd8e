// Attention in scalar code, once in the order of docs/design.md, section 2, bit
// by bit, and once as the plain formula in double precision.
#ifndef LANEWISE_TESTS_SIMD_ATTENTION_REFERENCE_H_
#define LANEWISE_TESTS_SIMD_ATTENTION_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "simd/attention.h"
#include "simd/types.h"
#include "tests/simd/attention_cache.h"
#include "tests/simd/kernel_test.h"
#include "tests/simd/scalar_lanes.h"

namespace lanewise {

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float RoundTo(CacheType type, float value) {
  if (type == CacheType::kF16) return F32FromF16(F16FromF32(value));
  if (type == CacheType::kBF16) return F32FromBF16(BF16FromF32(value));
  return value;
}

// One sequence with its queries, keys and values in row-major order.
struct AttentionCase {
  size_t heads = 3;
  size_t kv_heads = 1;
  size_t qk_dim = 16;
  size_t v_dim = 16;
  CacheType type = CacheType::kF32;
  size_t rows = 1;
  size_t position = 0;
  size_t keys = 1;
  bool causal = true;
  size_t window = 0;
  float softcap = 0.0f;
  float scale = 0.25f;
  float query_size = 1.0f;  // queries are uniform in ±query_size
  std::vector<float> slopes, sinks;
  const ScoreBias* bias = nullptr;
  uint64_t seed = 1;

  std::vector<float> q, k, v;  // [rows, heads, qk_dim], [keys, kv_heads, …]

  AttentionCase& Fill() {
    TestRandom random(seed);
    q = random.Uniforms(rows * heads * qk_dim, -query_size, query_size);
    k = random.Uniforms(keys * kv_heads * qk_dim, -2.0f, 2.0f);
    v = random.Uniforms(keys * kv_heads * v_dim, -1.0f, 1.0f);
    return *this;
  }
  KvShape shape() const { return {kv_heads, qk_dim, v_dim, type}; }
  AttentionParams params() const {
    AttentionParams result = {};
    result.heads = heads;
    result.kv = shape();
    result.scale = scale;
    result.causal = causal;
    result.window = window;
    result.softcap = softcap;
    result.alibi_slopes = slopes.empty() ? nullptr : slopes.data();
    result.bias = bias;
    result.sinks = sinks.empty() ? nullptr : sinks.data();
    return result;
  }
  bool Sees(size_t row, size_t key) const {
    const size_t p = position + row;
    if (causal && key > p) return false;
    if (!causal && window > 0 && key >= p + window) return false;
    return window == 0 || key + window > p;
  }
  // The case with the queries first … first + count only.
  AttentionCase Part(size_t first, size_t count) const {
    AttentionCase part = *this;
    part.rows = count;
    part.position = position + first;
    part.q.assign(q.begin() + first * heads * qk_dim,
                  q.begin() + (first + count) * heads * qk_dim);
    return part;
  }
};

inline TestCache MakeCache(const Context& context, const AttentionCase& c) {
  TestCache cache(c.shape(), c.keys);
  StoreKv(context, c.shape(), cache.view(), 0, c.keys, c.k.data(),
          c.kv_heads * c.qk_dim, c.v.data(), c.kv_heads * c.v_dim);
  return cache;
}

inline AttentionSequence SequenceOf(const AttentionCase& c,
                                    const TestCache& cache, float* out) {
  return {c.q.data(), c.heads * c.qk_dim, out,    c.heads * c.v_dim,
          c.rows,     c.position,         c.keys, cache.view()};
}

inline std::vector<float> RunKernel(const Context& context,
                                    const AttentionCase& c) {
  const TestCache cache = MakeCache(context, c);
  std::vector<float> out(c.rows * c.heads * c.v_dim, -77.0f);
  RunSequences(context, c.params(), {SequenceOf(c, cache, out.data())});
  return out;
}

// State of one row over some keys.
struct ScalarState {
  float m = -std::numeric_limits<float>::infinity();
  float l[16] = {};
  std::vector<float> o;
  bool empty() const { return std::isinf(m) && m < 0; }
};

inline void MergeScalar(const ScalarState& from, ScalarState* to) {
  const float m = std::max(to->m, from.m);
  const float kept = ScalarExp(to->m - m), added = ScalarExp(from.m - m);
  for (size_t i = 0; i < 16; ++i) {
    to->l[i] = std::fma(from.l[i], added, to->l[i] * kept);
  }
  for (size_t i = 0; i < to->o.size(); ++i) {
    to->o[i] = std::fma(from.o[i], added, to->o[i] * kept);
  }
  to->m = m;
}

inline void ScalarTile(const AttentionCase& c, size_t row, size_t head,
                       size_t tile, ScalarState* state) {
  const size_t kv_head = head / (c.heads / c.kv_heads);
  const size_t count = std::min(kKeysPerPage, c.keys - tile);
  float bias[kKeysPerPage] = {};
  if (c.bias != nullptr) c.bias->Fill(0, head, row, tile, bias);
  std::vector<float> s(count);
  float m = state->m;
  for (size_t j = 0; j < count; ++j) {
    if (!c.Sees(row, tile + j)) continue;
    float dot = 0.0f;
    for (size_t d = 0; d < c.qk_dim; ++d) {
      const float key = c.k[((tile + j) * c.kv_heads + kv_head) * c.qk_dim + d];
      dot = std::fma(c.q[(row * c.heads + head) * c.qk_dim + d],
                     RoundTo(c.type, key), dot);
    }
    s[j] = dot * c.scale;
    if (c.softcap > 0.0f) s[j] = c.softcap * ScalarTanh(s[j] / c.softcap);
    if (!c.slopes.empty()) {
      const float term = c.slopes[head] * static_cast<float>(tile + j);
      s[j] += term;
    }
    if (c.bias != nullptr) s[j] += bias[j];
    m = std::max(m, s[j]);
  }
  if (std::isinf(m) && m < 0) return;
  const float kept = ScalarExp(state->m - m);
  for (float& sum : state->l) sum *= kept;
  for (float& sum : state->o) sum *= kept;
  state->m = m;
  for (size_t j = 0; j < count; ++j) {
    if (!c.Sees(row, tile + j)) continue;
    const float p = ScalarExp(s[j] - m);
    state->l[j % 16] += p;
    for (size_t d = 0; d < c.v_dim; ++d) {
      const float value =
          c.v[((tile + j) * c.kv_heads + kv_head) * c.v_dim + d];
      state->o[d] = std::fma(p, RoundTo(c.type, value), state->o[d]);
    }
  }
}

// [rows, heads, v_dim] in the order of the contract.
inline std::vector<float> ExactAttention(const AttentionCase& c) {
  std::vector<float> out;
  for (size_t row = 0; row < c.rows; ++row) {
    for (size_t head = 0; head < c.heads; ++head) {
      ScalarState total;
      for (size_t first = 0; first < c.keys; first += kKeysPerSegment) {
        ScalarState segment;
        segment.o.resize(c.v_dim);
        const size_t end = std::min(c.keys, first + kKeysPerSegment);
        for (size_t tile = first; tile < end; tile += kKeysPerPage) {
          ScalarTile(c, row, head, tile, &segment);
        }
        if (total.empty()) {
          total = segment;
        } else if (!segment.empty()) {
          MergeScalar(segment, &total);
        }
      }
      if (!c.sinks.empty() && !total.empty()) {
        const float m = std::max(total.m, c.sinks[head]);
        const float kept = ScalarExp(total.m - m);
        for (float& sum : total.l) sum *= kept;
        for (float& sum : total.o) sum *= kept;
        total.l[0] += ScalarExp(c.sinks[head] - m);
      }
      for (size_t width = 8; width > 0; width /= 2) {
        for (size_t i = 0; i < width; ++i) total.l[i] += total.l[i + width];
      }
      for (size_t d = 0; d < c.v_dim; ++d) {
        out.push_back(total.empty() ? 0.0f : total.o[d] / total.l[0]);
      }
    }
  }
  return out;
}

// The plain formula in double precision.
inline std::vector<double> PlainAttention(const AttentionCase& c) {
  std::vector<double> out;
  for (size_t row = 0; row < c.rows; ++row) {
    for (size_t head = 0; head < c.heads; ++head) {
      const size_t kv_head = head / (c.heads / c.kv_heads);
      std::vector<double> s(c.keys, -HUGE_VAL), o(c.v_dim);
      double m = c.sinks.empty() ? -HUGE_VAL : c.sinks[head], l = 0.0;
      for (size_t j = 0; j < c.keys; ++j) {
        if (!c.Sees(row, j)) continue;
        double dot = 0.0;
        for (size_t d = 0; d < c.qk_dim; ++d) {
          dot +=
              static_cast<double>(c.q[(row * c.heads + head) * c.qk_dim + d]) *
              RoundTo(c.type, c.k[(j * c.kv_heads + kv_head) * c.qk_dim + d]);
        }
        s[j] = dot * c.scale;
        if (c.softcap > 0.0f) s[j] = c.softcap * std::tanh(s[j] / c.softcap);
        if (!c.slopes.empty()) {
          s[j] += static_cast<double>(c.slopes[head]) * static_cast<double>(j);
        }
        if (c.bias != nullptr) {
          float bias[kKeysPerPage];
          c.bias->Fill(0, head, row, j / kKeysPerPage * kKeysPerPage, bias);
          s[j] += bias[j % kKeysPerPage];
        }
        m = std::max(m, s[j]);
      }
      if (!c.sinks.empty()) l = std::exp(c.sinks[head] - m);
      for (size_t j = 0; j < c.keys; ++j) {
        if (!c.Sees(row, j) || s[j] == -HUGE_VAL) continue;
        const double p = std::exp(s[j] - m);
        l += p;
        for (size_t d = 0; d < c.v_dim; ++d) {
          o[d] += p * RoundTo(c.type,
                              c.v[(j * c.kv_heads + kv_head) * c.v_dim + d]);
        }
      }
      for (const double sum : o) out.push_back(l > 0.0 ? sum / l : 0.0);
    }
  }
  return out;
}

inline void ExpectSameBits(const std::vector<float>& expected,
                           const std::vector<float>& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(BitsOfFloat(expected[i]), BitsOfFloat(found[i]))
        << "element " << i << ": expected " << expected[i] << ", found "
        << found[i];
  }
}

inline void ExpectClose(const std::vector<double>& expected,
                        const std::vector<float>& found, double tolerance) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], found[i], tolerance) << "element " << i;
  }
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_ATTENTION_REFERENCE_H_
