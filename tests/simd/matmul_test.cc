#include "simd/matmul.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"
#include "tests/simd/matmul_reference.h"

namespace lanewise {
namespace {

constexpr ActivationType kModes[] = {ActivationType::kNative,
                                     ActivationType::kF32};

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kBlockTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0};
constexpr DType kSuperblockTypes[] = {DType::kQ4_K, DType::kQ6_K};
// Stored as F32.
constexpr DType kDecodedTypes[] = {DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL,
                                   DType::kMXFP4};
constexpr DType kDecodedSuperblockTypes[] = {DType::kQ2_K, DType::kQ3_K,
                                             DType::kQ5_K};

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Bits on targets with FMA; on others the difference of roundings, relative to
// the sum of magnitudes `scale`.
void ExpectSame(const Target& target, float found, float expected,
                float scale) {
  if (target.has_fma()) {
    ASSERT_EQ(BitsOf(found), BitsOf(expected)) << found << " " << expected;
  } else {
    ASSERT_NEAR(found, expected, scale * 1e-6f);
  }
}

// All M and N below against one reference of 17 x 40.
void CheckType(DType type, size_t k) {
  constexpr size_t kMaxM = 17, kMaxN = 40;
  SCOPED_TRACE(std::string(Traits(type).name) + " K " + std::to_string(k));
  const TestWeights w = MakeWeights(type, kMaxN, k, k + 1);
  const std::vector<float> x = TestRandom(k).Uniforms(kMaxM * k, -2.0f, 2.0f);
  for (const ActivationType mode : kModes) {
    SCOPED_TRACE(mode == ActivationType::kF32 ? "f32" : "native");
    const std::vector<float> expected =
        MatMulReference(w, kMaxN, x, kMaxM, mode);
    float largest = 0.0f;
    for (size_t n = 0; n < kMaxN; ++n) {
      float sum = 0.0f;
      for (const float value : w.Row(n)) sum += 2.0f * std::abs(value);
      largest = std::max(largest, sum);
    }
    for (const Target& target : Target::Available()) {
      SCOPED_TRACE(std::string(target.name()));
      const auto context = MakeContext(target);
      for (const size_t n : {1, 15, 16, 17, 40}) {
        const PackedMatrix b = MustPack(*context, w, n);
        for (const size_t m : {1, 2, 3, 7, 8, 9, 17}) {
          SCOPED_TRACE("M " + std::to_string(m) + " N " + std::to_string(n));
          const std::vector<float> c = RunMatMul(*context, b, x, m, mode);
          for (size_t i = 0; i < m; ++i) {
            for (size_t j = 0; j < n; ++j) {
              ASSERT_NO_FATAL_FAILURE(ExpectSame(
                  target, c[i * n + j], expected[i * kMaxN + j], largest));
            }
          }
        }
      }
    }
  }
}

TEST(MatMul, N13FloatWeightsSameBitsOnEveryTarget) {
  for (const DType type : kFloatTypes) {
    for (const size_t k : {1, 2, 31, 32, 64, 96, 255, 512, 601}) {
      CheckType(type, k);
    }
  }
}

TEST(MatMul, N13BlocksSameBitsOnEveryTarget) {
  for (const DType type : kBlockTypes) {
    for (const size_t k : {32, 64, 96, 256, 288, 512, 1888}) {
      CheckType(type, k);
    }
  }
}

TEST(MatMul, N13SuperblocksSameBitsOnEveryTarget) {
  for (const DType type : kSuperblockTypes) {
    for (const size_t k : {256, 512, 1536, 2048}) CheckType(type, k);
  }
}

TEST(MatMul, TypesWithoutKernelsAreTheirFloats) {
  for (const DType type : kDecodedTypes) {
    for (const size_t k : {32, 288}) CheckType(type, k);
  }
  for (const DType type : kDecodedSuperblockTypes) CheckType(type, 512);
}

// More rows than a task, more k than a chunk, columns beyond full panels, and a
// row alone: all the same bits for any thread count.
TEST(MatMul, SameBitsForAnyThreadsAndRows) {
  constexpr size_t kM = 133, kN = 273, kK = 1280;
  const std::vector<float> x = TestRandom(3).Uniforms(kM * kK);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
        DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    SCOPED_TRACE(std::string(Traits(type).name));
    const TestWeights w = MakeWeights(type, kN, kK, 5);
    for (const ActivationType mode : kModes) {
      const Target target = Target::Best();
      std::vector<float> expected;
      for (const size_t threads : {1, 2, 3, 7}) {
        const auto context = MakeContext(target, threads);
        const PackedMatrix b = MustPack(*context, w, kN);
        const std::vector<float> c = RunMatMul(*context, b, x, kM, mode);
        if (expected.empty()) expected = c;
        ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * 4), 0);
        for (const size_t row : {size_t{0}, size_t{64}, kM - 1}) {
          const std::vector<float> alone(x.begin() + row * kK,
                                         x.begin() + (row + 1) * kK);
          const std::vector<float> one = RunMatMul(*context, b, alone, 1, mode);
          ASSERT_EQ(std::memcmp(one.data(), c.data() + row * kN, kN * 4), 0);
        }
      }
      for (const size_t row : {size_t{0}, size_t{77}, kM - 1}) {
        for (const size_t n : {size_t{0}, size_t{100}, kN - 1}) {
          ASSERT_EQ(expected[row * kN + n],
                    DotReference(w, n, x.data() + row * kK, mode));
        }
      }
    }
  }
}

TEST(MatMul, BiasIsAddedBeforeWhatWasThere) {
  constexpr size_t kM = 9, kN = 37, kK = 64, kLdc = 41;
  const std::vector<float> x = TestRandom(1).Uniforms(kM * kK);
  const std::vector<float> bias = TestRandom(2).Uniforms(kN + 1);
  const std::vector<float> old = TestRandom(4).Uniforms(kM * kLdc);
  const TestWeights w = MakeWeights(DType::kQ8_0, kN, kK, 7);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target, 2);
    const PackedMatrix b = MustPack(*context, w, kN);
    const std::vector<float> sums =
        RunMatMul(*context, b, x, kM, ActivationType::kNative);
    Activations a;
    ASSERT_TRUE(a.Reserve(kM, kK).ok());
    a.Prepare(*context, x.data(), kK, kM, kK, Representation::kInt8);
    for (const bool accumulate : {false, true}) {
      for (const bool with_bias : {false, true}) {
        std::vector<float> c = old;
        MatMulEpilogue epilogue;
        if (with_bias) epilogue.bias = bias.data() + 1;  // misaligned
        epilogue.accumulate = accumulate;
        MatMul(*context, a, ActivationType::kNative, b, c.data(), kLdc,
               epilogue);
        for (size_t i = 0; i < kM; ++i) {
          for (size_t j = 0; j < kLdc; ++j) {
            float expected = old[i * kLdc + j];  // untouched beyond kN
            if (j < kN) {
              float sum = sums[i * kN + j];
              if (with_bias) sum += bias[j + 1];
              expected = accumulate ? expected + sum : sum;
            }
            ASSERT_EQ(c[i * kLdc + j], expected) << i << " " << j;
          }
        }
      }
    }
  });
}

// Every integer at its extreme: pairs of 255 · 127 before the offset, −128 and
// 127 weights, the largest integer scales.
TEST(MatMul, ExactAtTheExtremes) {
  constexpr size_t kK = 512, kN = 16;
  for (const DType type :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    for (const int byte : {0x00, 0x7F, 0x80, 0xFF, 0xF0}) {
      SCOPED_TRACE(std::string(Traits(type).name) + " " + std::to_string(byte));
      TestWeights w = MakeWeights(type, kN, kK, 1);
      std::fill(w.bytes.begin(), w.bytes.end(), static_cast<uint8_t>(byte));
      const HalfOffsets at = HalfOffsetsOf(type);
      const size_t block_bytes = Traits(type).block_bytes;
      for (size_t i = 0; i < w.bytes.size(); i += block_bytes) {
        StoreHalf(w.bytes.data() + i + at.d, 0x3C00);  // 1
        if (at.m >= 0) StoreHalf(w.bytes.data() + i + at.m, 0xBC00);
        if (type == DType::kQ6_K) {
          for (size_t j = 0; j < 16; ++j) {
            w.bytes[i + 192 + j] = (i / block_bytes) % 2 ? 0x80 : 0x7F;
          }
        }
      }
      for (const float sign : {1.0f, -1.0f}) {
        std::vector<float> x(2 * kK, 127.0f * sign);
        for (size_t i = kK; i < 2 * kK; i += 3) x[i] = -x[i];
        const std::vector<float> expected =
            MatMulReference(w, kN, x, 2, ActivationType::kNative);
        for (const Target& target : Target::Available()) {
          SCOPED_TRACE(std::string(target.name()));
          const auto context = MakeContext(target);
          // All sums are integers below 2^24 times a power of two, or nearly:
          // where P is exact there is no difference without FMA either.
          const std::vector<float> c =
              RunMatMul(*context, MustPack(*context, w, kN), x, 2,
                        ActivationType::kNative);
          for (size_t i = 0; i < c.size(); ++i) {
            ASSERT_NO_FATAL_FAILURE(
                ExpectSame(target, c[i], expected[i], std::abs(expected[i])));
          }
        }
      }
    }
  }
}

// A product of 127 · 128 · 16 · 127 per half block reaches the bound of 2^24.
TEST(MatMul, LargestSumOfQ6_KIsExact) {
  TestWeights w = MakeWeights(DType::kQ6_K, 1, 256, 1);
  std::fill(w.bytes.begin(), w.bytes.end(), uint8_t{0});  // weights of −32
  std::fill(w.bytes.begin() + 192, w.bytes.begin() + 208, uint8_t{0x80});
  StoreHalf(w.bytes.data() + 208, 0x3C00);
  const std::vector<float> x(256, 127.0f);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const PackedMatrix b = MustPack(*context, w, 1);
    const float expected = 256.0f * 127.0f * 128.0f * 32.0f;
    EXPECT_EQ(RunMatMul(*context, b, x, 1, ActivationType::kNative)[0],
              expected);
    EXPECT_EQ(RunMatMul(*context, b, x, 1, ActivationType::kF32)[0], expected);
  });
}

// Zero, denormal and huge activations in one row, beside ordinary ones.
TEST(MatMul, BlocksOfExtremeMagnitude) {
  constexpr size_t kK = 256, kN = 17;
  std::vector<float> x = TestRandom(8).Uniforms(kK);
  for (size_t i = 0; i < 32; ++i) {
    x[i] = 0.0f;
    x[32 + i] = i % 2 ? -1e-42f : 1e-42f;         // denormal
    x[64 + i] = x[64 + i] * 0x1p-100f;            // below the limit
    x[96 + i] = 0x1p-100f * (i == 3 ? 1 : 0.5f);  // on the limit
    x[128 + i] *= 1e30f;
  }
  x[160] = 3e4f;  // one outlier
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
        DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    SCOPED_TRACE(std::string(Traits(type).name));
    const TestWeights w = MakeWeights(type, kN, kK, 9);
    for (const ActivationType mode : kModes) {
      const std::vector<float> expected = MatMulReference(w, kN, x, 1, mode);
      for (const Target& target : Target::Available()) {
        SCOPED_TRACE(std::string(target.name()));
        const auto context = MakeContext(target);
        const std::vector<float> c =
            RunMatMul(*context, MustPack(*context, w, kN), x, 1, mode);
        for (size_t n = 0; n < kN; ++n) {
          ASSERT_NO_FATAL_FAILURE(
              ExpectSame(target, c[n], expected[n], 32e30f));
        }
      }
    }
  }
}

TEST(MatMul, N1SumBeyondHalfRange) {
  const TestWeights w = [] {
    TestWeights ones{DType::kF16, 1000, 2000, {}};
    for (size_t i = 0; i < 1000; ++i) {
      ones.bytes.push_back(0x00);
      ones.bytes.push_back(0x3C);
    }
    return ones;
  }();
  const std::vector<float> x(1000, 70.0f);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const PackedMatrix b = MustPack(*context, w, 1);
    EXPECT_EQ(RunMatMul(*context, b, x, 1, ActivationType::kNative)[0],
              70000.0f);
  });
}

TEST(MatMul, N5ActivationsBeyondHalfRange) {
  constexpr size_t kK = 64, kN = 5, kM = 70;
  std::vector<float> x = TestRandom(4).Uniforms(kM * kK, -1e6f, 1e6f);
  x[3] = 3e38f;
  for (const DType type : {DType::kF16, DType::kF32, DType::kQ8_0}) {
    const TestWeights w = MakeWeights(type, kN, kK, 2, 1e-4f);
    ForEachTarget([&](const Target& target) {
      const auto context = MakeContext(target);
      const PackedMatrix b = MustPack(*context, w, kN);
      const std::vector<float> c =
          RunMatMul(*context, b, x, kM, ActivationType::kNative);
      for (size_t i = 0; i < kM; ++i) {
        const std::vector<float> row(x.begin() + i * kK,
                                     x.begin() + (i + 1) * kK);
        const std::vector<float> one =
            RunMatMul(*context, b, row, 1, ActivationType::kNative);
        for (size_t n = 0; n < kN; ++n) {
          ASSERT_TRUE(std::isfinite(c[i * kN + n]));
          ASSERT_EQ(c[i * kN + n], one[n]);
        }
      }
    });
  }
}

// Not finite in, not finite out: never a silent finite number.
TEST(MatMul, NonFiniteActivationsShow) {
  constexpr size_t kK = 256;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> x = TestRandom(6).Uniforms(kK);
    x[77] = bad;
    for (const DType type : {DType::kF32, DType::kBF16, DType::kQ4_1,
                             DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
      const TestWeights w = MakeWeights(type, 3, kK, 3);
      ForEachTarget([&](const Target& target) {
        const auto context = MakeContext(target);
        const PackedMatrix b = MustPack(*context, w, 3);
        for (const ActivationType mode : kModes) {
          for (const float c : RunMatMul(*context, b, x, 1, mode)) {
            EXPECT_FALSE(std::isfinite(c)) << Traits(type).name;
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace lanewise
