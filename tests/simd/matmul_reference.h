// Random weights of every type and a scalar matrix product that follows
// docs/design.md, section 2, word by word.
#ifndef LANEWISE_TESTS_SIMD_MATMUL_REFERENCE_H_
#define LANEWISE_TESTS_SIMD_MATMUL_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simd/matmul.h"
#include "simd/types.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {

// Weights as in a file.
struct TestWeights {
  DType type;
  size_t cols, row_bytes;
  std::vector<uint8_t> bytes;

  std::vector<const uint8_t*> Rows(size_t n) const {
    std::vector<const uint8_t*> rows;
    for (size_t i = 0; i < n; ++i) rows.push_back(bytes.data() + i * row_bytes);
    return rows;
  }
  std::vector<float> Row(size_t row) const {  // decoded
    std::vector<float> out(cols);
    Traits(type).decode(bytes.data() + row * row_bytes, cols, out.data());
    return out;
  }
};

// Where the halves that scale a block lie in it; -1: none.
struct HalfOffsets {
  int d, m;
};

inline HalfOffsets HalfOffsetsOf(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    case DType::kMXFP4:
      return {-1, -1};
    default:
      return {0, -1};
  }
}

inline void StoreHalf(uint8_t* bytes, uint16_t bits) {
  bytes[0] = static_cast<uint8_t>(bits);
  bytes[1] = static_cast<uint8_t>(bits >> 8);
}

// Random integers and integer scales, float scales of either sign near
// `scale`.
inline TestWeights MakeWeights(DType type, size_t n, size_t k, uint64_t seed,
                               float scale = 0.01f) {
  TestRandom random(seed);
  const DTypeTraits& traits = Traits(type);
  TestWeights w{type, k, BytesOf(type, k), {}};
  w.bytes.resize(n * w.row_bytes);
  for (uint8_t& byte : w.bytes) byte = static_cast<uint8_t>(random.Bits());
  const size_t blocks = n * k / traits.block_size;
  for (size_t i = 0; i < blocks; ++i) {
    uint8_t* block = w.bytes.data() + i * traits.block_bytes;
    const float value = random.Uniform(-1.0f, 1.0f);
    if (type == DType::kF32) {
      std::memcpy(block, &value, sizeof(value));  // tests run little-endian
    } else if (type == DType::kBF16) {
      StoreHalf(block, BF16FromF32(value));
    } else if (type == DType::kF16) {
      StoreHalf(block, F16FromF32(value));
    } else if (type == DType::kMXFP4) {
      block[0] = static_cast<uint8_t>(120 + random.Bits() % 8);
    } else if (traits.block_size > 1) {
      const HalfOffsets at = HalfOffsetsOf(type);
      StoreHalf(block + at.d, F16FromF32(value * scale));
      if (at.m >= 0) {
        StoreHalf(block + at.m, F16FromF32(random.Uniform(-scale, scale)));
      }
    }
  }
  return w;
}

// One block of 32 as the contract sees it: P and S are sums of activations
// times these integers.
struct IntegerBlock {
  int p[32];
  int s = 0;
  float d, m = 0.0f;
};

inline IntegerBlock IntegersOf(DType type, const uint8_t* row, size_t index) {
  IntegerBlock out;
  if (type == DType::kQ4_0) {
    const auto& block = reinterpret_cast<const BlockQ4_0*>(row)[index];
    out.d = F32FromF16(block.d.get());
    for (int k = 0; k < 32; ++k) {
      out.p[k] = (block.q[k % 16] >> (k / 16 * 4) & 15) - 8;
    }
  } else if (type == DType::kQ4_1) {
    const auto& block = reinterpret_cast<const BlockQ4_1*>(row)[index];
    out.d = F32FromF16(block.d.get());
    out.m = F32FromF16(block.m.get());
    out.s = 1;
    for (int k = 0; k < 32; ++k) {
      out.p[k] = block.q[k % 16] >> (k / 16 * 4) & 15;
    }
  } else if (type == DType::kQ8_0) {
    const auto& block = reinterpret_cast<const BlockQ8_0*>(row)[index];
    out.d = F32FromF16(block.d.get());
    for (int k = 0; k < 32; ++k) out.p[k] = block.q[k];
  } else if (type == DType::kQ4_K) {
    const auto& block = reinterpret_cast<const BlockQ4_K*>(row)[index / 8];
    const size_t part = index % 8;
    const ScaleMin scale = GetScaleMin(block.scales, part);
    out.d = F32FromF16(block.d.get());
    out.m = -F32FromF16(block.dmin.get());
    out.s = scale.min;
    for (int k = 0; k < 32; ++k) {
      const uint8_t byte = block.q[part / 2 * 32 + k];
      out.p[k] = scale.scale * (part % 2 == 0 ? byte & 15 : byte >> 4);
    }
  } else {  // Q6_K
    const auto& block = reinterpret_cast<const BlockQ6_K*>(row)[index / 8];
    const size_t part = index % 8;
    uint8_t q[256];
    UnpackQ6K(block, q);
    out.d = F32FromF16(block.d.get());
    for (int k = 0; k < 32; ++k) {
      out.p[k] = block.scales[part * 2 + k / 16] * (q[part * 32 + k] - 32);
    }
  }
  return out;
}

// Quantized activations of one block of 32.
struct IntegerActivations {
  int q[32];
  float d;
};

inline IntegerActivations QuantizeReference(const float* x) {
  IntegerActivations out = {};
  float absmax = 0.0f;
  for (int i = 0; i < 32; ++i) absmax = std::max(absmax, std::abs(x[i]));
  if (absmax < 0x1p-100f) return out;
  const float r = 127.0f / absmax;
  out.d = absmax / 127.0f;
  for (int i = 0; i < 32; ++i) {
    out.q[i] = static_cast<int>(std::nearbyint(x[i] * r));
  }
  return out;
}

inline float ToBF16Operand(float x) {
  const float rounded = F32FromBF16(BF16FromF32(x));
  return std::abs(rounded) < 0x1p-56f ? 0.0f : rounded;
}

// One output: row x of the activations with row `row` of the weights.
inline float DotReference(const TestWeights& w, size_t row, const float* x,
                          ActivationType activations) {
  const uint8_t* bytes = w.bytes.data() + row * w.row_bytes;
  float acc = 0.0f;
  const Representation representation = RepresentationFor(activations, w.type);
  if (representation == Representation::kInt8) {
    for (size_t b = 0; b < w.cols / 32; ++b) {
      const IntegerActivations a = QuantizeReference(x + b * 32);
      const IntegerBlock block = IntegersOf(w.type, bytes, b);
      int p = 0, s = 0;
      for (int k = 0; k < 32; ++k) {
        p += block.p[k] * a.q[k];
        s += block.s * a.q[k];
      }
      acc = std::fma(static_cast<float>(p), block.d * a.d, acc);
      if (w.type == DType::kQ4_1 || w.type == DType::kQ4_K) {
        acc = std::fma(static_cast<float>(s), block.m * a.d, acc);
      }
    }
    return acc;
  }
  const std::vector<float> weights = w.Row(row);
  for (size_t i = 0; i < w.cols; ++i) {
    // Within a pair of bf16 the odd one comes first.
    size_t k = i;
    if (representation == Representation::kBF16) {
      k = i ^ 1;
      if (k >= w.cols) k = i;
    }
    const float weight =
        w.type == DType::kBF16 ? ToBF16Operand(weights[k]) : weights[k];
    const float value =
        representation == Representation::kBF16 ? ToBF16Operand(x[k]) : x[k];
    acc = std::fma(value, weight, acc);
  }
  return acc;
}

// [m, n]
inline std::vector<float> MatMulReference(const TestWeights& w, size_t n,
                                          const std::vector<float>& x, size_t m,
                                          ActivationType activations) {
  std::vector<float> out;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      out.push_back(DotReference(w, j, x.data() + i * w.cols, activations));
    }
  }
  return out;
}

// The first n rows of w, packed.
inline PackedMatrix MustPack(const Context& context, const TestWeights& w,
                             size_t n) {
  absl::StatusOr<PackedMatrix> packed =
      Pack(context, w.type, w.cols, w.Rows(n));
  EXPECT_TRUE(packed.ok()) << packed.status();
  return std::move(packed).value();
}

// [m, n], by the kernels.
inline std::vector<float> RunMatMul(const Context& context,
                                    const PackedMatrix& b,
                                    const std::vector<float>& x, size_t m,
                                    ActivationType activations) {
  Activations a;
  EXPECT_TRUE(a.Reserve(m, b.cols()).ok());
  a.Prepare(context, x.data(), b.cols(), m, b.cols(),
            RepresentationFor(activations, b.type()));
  std::vector<float> c(m * b.rows(), -1e30f);
  MatMul(context, a, activations, b, c.data(), b.rows());
  return c;
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_MATMUL_REFERENCE_H_
