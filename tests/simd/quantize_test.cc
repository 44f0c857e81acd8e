#include "simd/quantize.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr DType kBlockTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                                 DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string NameOf(DType type) { return std::string(Traits(type).name); }

std::vector<uint8_t> Encoded(DType type, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(BytesOf(type, values.size()));
  Encode(type, values.data(), values.size(), bytes.data());
  return bytes;
}

std::vector<float> RoundTrip(DType type, const std::vector<float>& values) {
  const std::vector<uint8_t> bytes = Encoded(type, values);
  std::vector<float> stored(values.size());
  Traits(type).decode(bytes.data(), stored.size(), stored.data());
  return stored;
}

double RelativeRms(DType type, const std::vector<float>& values) {
  const std::vector<float> stored = RoundTrip(type, values);
  return Compare(values.data(), stored.data(), values.size()).RelativeRms();
}

// A multiple of 256 values of three kinds, as the table of reference errors
// below was made from.
constexpr size_t kCount = 256 * 64;

std::vector<float> Bell() {
  TestRandom random(1);
  std::vector<float> values(kCount);
  for (float& value : values) {
    const float a = random.Uniform(-1, 1), b = random.Uniform(-1, 1);
    value = a + b + random.Uniform(-1, 1);
  }
  return values;
}

std::vector<float> Tails() {
  TestRandom random(2);
  std::vector<float> values(kCount);
  for (float& value : values) {
    const float u = random.Uniform(-1, 1);
    value = u * u * u;
  }
  return values;
}

std::vector<float> Shifted() {
  TestRandom random(3);
  std::vector<float> values(kCount);
  for (float& value : values) value = random.Uniform(-1, 1) * 0.25f + 0.5f;
  return values;
}

TEST(Quantize, KnowsItsTypes) {
  for (const DType type : kBlockTypes) EXPECT_TRUE(CanEncode(type));
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_TRUE(CanEncode(type));
  }
  for (const DType type : {DType::kI32, DType::kQ2_K, DType::kIQ4_NL,
                           DType::kMXFP4, DType::kF8E4M3, DType::kBool}) {
    EXPECT_FALSE(CanEncode(type)) << NameOf(type);
  }
}

// Relative root mean square errors of the quantizer of ggml (version 0.25.3)
// on the same values.
TEST(Quantize, ErrorIsNoLargerThanThatOfTheReference) {
  const struct {
    DType type;
    double bell, tails, shifted;
  } kReference[] = {
      {DType::kQ8_0, 0.004968, 0.005179, 0.003165},
      {DType::kQ4_0, 0.080395, 0.079310, 0.049251},
      {DType::kQ4_1, 0.074497, 0.084461, 0.016855},
      {DType::kQ4_K, 0.067787, 0.071990, 0.024327},
      {DType::kQ5_K, 0.034336, 0.037594, 0.012065},
      {DType::kQ6_K, 0.016859, 0.017453, 0.010843},
  };
  for (const auto& row : kReference) {
    EXPECT_LE(RelativeRms(row.type, Bell()), row.bell) << NameOf(row.type);
    EXPECT_LE(RelativeRms(row.type, Tails()), row.tails) << NameOf(row.type);
    EXPECT_LE(RelativeRms(row.type, Shifted()), row.shifted)
        << NameOf(row.type);
  }
}

// No element is further off than about one step of its block.
TEST(Quantize, ErrorsStayBelowAStep) {
  const struct {
    DType type;
    float bound;  // of the largest magnitude in the block
  } kBounds[] = {{DType::kQ8_0, 0.0045f}, {DType::kQ4_0, 0.14f},
                 {DType::kQ4_1, 0.14f},   {DType::kQ4_K, 0.15f},
                 {DType::kQ5_K, 0.07f},   {DType::kQ6_K, 0.04f}};
  for (const auto& row : kBounds) {
    const size_t block = Traits(row.type).block_size;
    for (const std::vector<float>& values : {Bell(), Tails(), Shifted()}) {
      const std::vector<float> stored = RoundTrip(row.type, values);
      for (size_t i = 0; i < values.size(); i += block) {
        float peak = 0.0f, error = 0.0f;
        for (size_t j = i; j < i + block; ++j) {
          peak = std::max(peak, std::abs(values[j]));
          error = std::max(error, std::abs(values[j] - stored[j]));
        }
        ASSERT_LE(error, row.bound * peak) << NameOf(row.type) << " at " << i;
      }
    }
  }
}

TEST(Quantize, ValuesThatAFormatHoldsStayExact) {
  std::vector<float> values(256);
  for (size_t i = 0; i < 256; ++i) {
    values[i] = 0.5f * (static_cast<float>(i * 7 % 16) - 8.0f);
  }
  EXPECT_EQ(RoundTrip(DType::kQ4_0, values), values);
  for (float& value : values) value = 0.25f * value + 1.25f;
  EXPECT_EQ(RoundTrip(DType::kQ4_1, values), values);
  for (size_t i = 0; i < 256; ++i) {
    values[i] = 0.125f * (static_cast<float>(i * 37 % 255) - 127.0f);
    if (i % 32 == 5) values[i] = -0.125f * 127.0f;
  }
  EXPECT_EQ(RoundTrip(DType::kQ8_0, values), values);
  // Parts whose scales are 63 and 21 times 2^-5; minimum 0 and 63 · 2^-3.
  for (size_t i = 0; i < 256; ++i) {
    const float scale = i / 32 % 2 == 0 ? 63.0f : 21.0f;
    const float min = i / 32 % 4 == 0 ? 63.0f : 0.0f;
    values[i] = scale * 0x1p-5f * static_cast<float>(i * 7 % 16) - min * 0.125f;
  }
  EXPECT_EQ(RoundTrip(DType::kQ4_K, values), values);
  for (size_t i = 0; i < 256; ++i) {
    const float scale = i / 16 % 2 == 0 ? 128.0f : 77.0f;
    values[i] = scale * 0x1p-9f * (static_cast<float>(i * 7 % 64) - 32.0f);
    if (i % 16 == 3) values[i] = scale * 0x1p-9f * -32.0f;
  }
  EXPECT_LE(RelativeRms(DType::kQ6_K, values), 1e-7);
}

TEST(Quantize, Q8IsStableWhenDoneTwice) {
  const std::vector<float> once = RoundTrip(DType::kQ8_0, Bell());
  EXPECT_LE(RelativeRms(DType::kQ8_0, once), 1e-4);
}

TEST(Quantize, F16AndBF16RoundToNearestEven) {
  // 1 + 2^-11 lies halfway between two halves, 1 + 3·2^-11 too.
  const std::vector<float> values = {1.0f,     1.0f + 0x1p-11f, 1.0f + 0x3p-11f,
                                     -0.0f,    0x1p-24f,        65504.0f,
                                     65519.0f, 0x1p-25f};
  const std::vector<float> stored = RoundTrip(DType::kF16, values);
  EXPECT_EQ(stored, (std::vector<float>{1.0f, 1.0f, 1.0f + 0x1p-9f, -0.0f,
                                        0x1p-24f, 65504.0f, 65504.0f, 0.0f}));
  EXPECT_TRUE(std::signbit(stored[3]));
  const std::vector<float> wide = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, -3.0f};
  EXPECT_EQ(RoundTrip(DType::kBF16, wide),
            (std::vector<float>{1.0f, 1.0f + 0x1p-6f, -3.0f}));
}

TEST(Quantize, F32KeepsEveryBit) {
  const std::vector<float> values = {0.1f, -0.0f, FLT_MAX, FLT_TRUE_MIN,
                                     -1e-9f};
  const std::vector<float> stored = RoundTrip(DType::kF32, values);
  EXPECT_EQ(std::memcmp(stored.data(), values.data(), 20), 0);
}

TEST(Quantize, TooLargeBecomesTheLargest) {
  const std::vector<float> values = {FLT_MAX, -FLT_MAX, 65520.0f, -1e6f};
  EXPECT_EQ(RoundTrip(DType::kF16, values),
            (std::vector<float>{65504.0f, -65504.0f, 65504.0f, -65504.0f}));
  const std::vector<float> wide = RoundTrip(DType::kBF16, values);
  EXPECT_EQ(wide[0], 0x1.FEp127f);
  EXPECT_EQ(wide[1], -0x1.FEp127f);
}

TEST(Quantize, N8ZeroBlock) {
  for (const DType type : kBlockTypes) {
    const std::vector<float> zeros(256, 0.0f);
    EXPECT_EQ(RoundTrip(type, zeros), zeros) << NameOf(type);
    const size_t bytes = Traits(type).block_bytes;
    const std::vector<uint8_t> block = Encoded(type, zeros);
    const size_t scale_at = type == DType::kQ6_K ? bytes - 2 : 0;
    EXPECT_EQ(block[scale_at], 0) << NameOf(type);
    EXPECT_EQ(block[scale_at + 1], 0) << NameOf(type);
  }
}

TEST(Quantize, N8DenormalBlock) {
  for (const DType type : kBlockTypes) {
    for (const float tiny : {FLT_TRUE_MIN, 1e-39f, FLT_MIN, 1e-11f, 0x1p-25f}) {
      std::vector<float> values(256, tiny);
      for (size_t i = 0; i < 256; i += 3) values[i] = -tiny;
      for (const float value : RoundTrip(type, values)) {
        ASSERT_LE(std::abs(value), 0x1p-24f) << NameOf(type) << " " << tiny;
      }
    }
  }
}

TEST(Quantize, N8OneHugeValue) {
  for (const DType type : kBlockTypes) {
    for (const float huge : {1e6f, 1e20f, -1e20f, FLT_MAX, -FLT_MAX}) {
      for (const size_t at : {0u, 17u, 255u}) {
        std::vector<float> values(256, 0.01f);
        values[at] = huge;
        const std::vector<float> stored = RoundTrip(type, values);
        for (const float value : stored) ASSERT_TRUE(std::isfinite(value));
        EXPECT_GT(stored[at] * (huge > 0 ? 1 : -1), 60000.0f)
            << NameOf(type) << " " << huge;
      }
    }
  }
}

// A block without weight in the fit must not divide by zero.
TEST(Quantize, N7ConstantBlocksStayFinite) {
  for (const DType type : kBlockTypes) {
    for (const float constant : {1.0f, -1.0f, 3e-7f, -65504.0f, 1e-3f}) {
      const std::vector<float> values(256, constant);
      for (const float value : RoundTrip(type, values)) {
        ASSERT_NEAR(value, constant, std::abs(constant) * 0.15f + 0x1p-25f)
            << NameOf(type);
      }
    }
  }
}

TEST(Quantize, AnyFiniteBitsGiveFiniteValues) {
  TestRandom random(7);
  for (const DType type : kBlockTypes) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> values(256);
      for (float& value : values) {
        const uint32_t bits = static_cast<uint32_t>(random.Bits());
        std::memcpy(&value, &bits, sizeof(value));
        if (!std::isfinite(value)) value = 0.0f;
      }
      for (const float value : RoundTrip(type, values)) {
        ASSERT_TRUE(std::isfinite(value)) << NameOf(type);
      }
    }
  }
}

// Scales that are subnormal as halves are used, not lost.
TEST(Quantize, SmallValuesKeepTheirPrecision) {
  std::vector<float> values = Bell();
  for (float& value : values) value *= 1e-6f;
  for (const DType type : kBlockTypes) {
    EXPECT_LE(RelativeRms(type, values), 0.12) << NameOf(type);
  }
}

TEST(Quantize, BlocksAreIndependentAndAnyAddressWillDo) {
  const std::vector<float> values = Tails();
  for (const DType type : kBlockTypes) {
    const std::vector<uint8_t> all = Encoded(type, values);
    const DTypeTraits& traits = Traits(type);
    std::vector<uint8_t> odd(traits.block_bytes + 1);
    for (size_t block = 0; block < 5; ++block) {
      Encode(type, values.data() + block * traits.block_size, traits.block_size,
             odd.data() + 1);
      EXPECT_EQ(
          std::memcmp(odd.data() + 1, all.data() + block * traits.block_bytes,
                      traits.block_bytes),
          0)
          << NameOf(type);
    }
    Encode(type, values.data(), 0, nullptr);
  }
}

TEST(Quantize, N10FindsTheFirstNonFiniteValue) {
  std::vector<float> values(37, 1.0f);
  EXPECT_EQ(FirstNonFinite(values.data(), values.size()), 37u);
  values[36] = std::nanf("");
  EXPECT_EQ(FirstNonFinite(values.data(), values.size()), 36u);
  values[5] = -kInfinity;
  EXPECT_EQ(FirstNonFinite(values.data(), values.size()), 5u);
  values[0] = kInfinity;
  EXPECT_EQ(FirstNonFinite(values.data(), values.size()), 0u);
  EXPECT_EQ(FirstNonFinite(nullptr, 0), 0u);
}

TEST(Quantize, ErrorsAddUp) {
  const std::vector<float> values = {3.0f, -4.0f}, stored = {3.0f, -3.5f};
  RoundTripError error = Compare(values.data(), stored.data(), 2);
  EXPECT_EQ(error.squared_error, 0.25);
  EXPECT_EQ(error.squared_value, 25.0);
  EXPECT_EQ(error.largest, 0.5);
  EXPECT_EQ(error.RelativeRms(), 0.1);
  error.Add(Compare(values.data(), values.data(), 2));
  EXPECT_EQ(error.squared_value, 50.0);
  EXPECT_EQ(error.largest, 0.5);
  EXPECT_EQ(RoundTripError().RelativeRms(), 0.0);
}

}  // namespace
}  // namespace lanewise
