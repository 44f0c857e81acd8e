// Packing, and the conversion of activations.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "simd/matmul.h"
#include "tests/simd/kernel_test.h"
#include "tests/simd/matmul_reference.h"

namespace lanewise {
namespace {

constexpr DType kWeightTypes[] = {
    DType::kF32,  DType::kF16,    DType::kBF16,   DType::kF64,  DType::kI8,
    DType::kU8,   DType::kF8E4M3, DType::kQ4_0,   DType::kQ4_1, DType::kQ5_0,
    DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K, DType::kQ4_K,
    DType::kQ5_K, DType::kQ6_K,   DType::kIQ4_NL, DType::kMXFP4};

std::string NameOf(DType type) { return std::string(Traits(type).name); }

TEST(Pack, DecodeRowGivesTheOriginalRow) {
  const auto context = MakeContext(Target::Best(), 3);
  for (const DType type : kWeightTypes) {
    SCOPED_TRACE(NameOf(type));
    const size_t k = Traits(type).block_size == 1 ? 77 : 512;
    const TestWeights w = MakeWeights(type, 37, k, 11);
    const PackedMatrix packed = MustPack(*context, w, 37);
    EXPECT_EQ(packed.rows(), 37u);
    EXPECT_EQ(packed.cols(), k);
    EXPECT_EQ(packed.bytes(), 3 * packed.panel_bytes());
    for (size_t row = 0; row < 37; ++row) {
      const std::vector<float> expected = w.Row(row);
      std::vector<float> out(k);
      DecodeRow(packed, row, out.data());
      // Bits, so that signs of zero and NaN count.
      ASSERT_EQ(std::memcmp(out.data(), expected.data(), k * 4), 0) << row;
    }
  }
}

// Every bit pattern of the integers and scales, in random blocks.
TEST(Pack, DecodeRowOfArbitraryBytes) {
  const auto context = MakeContext(Target::Best());
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0,
                           DType::kQ4_K, DType::kQ6_K, DType::kF16}) {
    SCOPED_TRACE(NameOf(type));
    TestWeights w = MakeWeights(type, 16, 4096, 13);
    TestRandom random(17);
    for (uint8_t& byte : w.bytes) byte = static_cast<uint8_t>(random.Bits());
    const PackedMatrix packed = MustPack(*context, w, 16);
    for (size_t row = 0; row < 16; ++row) {
      const std::vector<float> expected = w.Row(row);
      std::vector<float> out(4096);
      DecodeRow(packed, row, out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(out[i]));
        } else {
          ASSERT_EQ(out[i], expected[i]) << row << " " << i;
          ASSERT_EQ(std::signbit(out[i]), std::signbit(expected[i]));
        }
      }
    }
  }
}

TEST(Pack, SmallBF16WeightsBecomeZero) {
  const auto context = MakeContext(Target::Best());
  const float values[] = {0x1p-56f,  -0x1p-56f, 0x1.fep-57f, -0x1.fep-57f,
                          0x1p-130f, -0.0f,     1.0f};
  TestWeights w{DType::kBF16, 7, 14, std::vector<uint8_t>(14)};
  for (size_t i = 0; i < 7; ++i) {
    StoreHalf(w.bytes.data() + 2 * i, BF16FromF32(values[i]));
  }
  const PackedMatrix packed = MustPack(*context, w, 1);
  float out[7];
  DecodeRow(packed, 0, out);
  const float expected[] = {0x1p-56f, -0x1p-56f, 0, 0, 0, 0, 1};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(out[i], expected[i]);
    if (expected[i] == 0) {
      EXPECT_FALSE(std::signbit(out[i]));
    }
  }
}

TEST(Pack, BitsPerWeight) {
  const auto context = MakeContext(Target::Best());
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
        DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    const TestWeights w = MakeWeights(type, 16, 1024, 1);
    const PackedMatrix packed = MustPack(*context, w, 16);
    EXPECT_EQ(packed.type(), type);
    EXPECT_GE(packed.bytes(), w.bytes.size());
    EXPECT_LE(packed.bytes(), w.bytes.size() * 1.03) << NameOf(type);
  }
}

TEST(Pack, RejectsTypesThatHoldNoWeights) {
  const auto context = MakeContext(Target::Best());
  const uint8_t bytes[64] = {};
  const uint8_t* rows[] = {bytes};
  for (const DType type :
       {DType::kI16, DType::kI32, DType::kI64, DType::kBool}) {
    const auto packed = Pack(*context, type, 1, rows);
    ASSERT_EQ(packed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(packed.status().message().find(Traits(type).name),
              absl::string_view::npos)
        << packed.status();
  }
}

// L19: a Q4_K or Q6_K row of 32 elements has no whole block.
TEST(Pack, L19RejectsPartialBlocks) {
  const auto context = MakeContext(Target::Best());
  const uint8_t bytes[1] = {};
  const uint8_t* rows[] = {bytes};
  for (const DType type : kWeightTypes) {
    const size_t block = Traits(type).block_size;
    for (const size_t k : {size_t{0}, size_t{32}, block - 1, block + 1}) {
      if (k % block == 0 && k != 0) continue;
      const auto packed = Pack(*context, type, k, rows);
      ASSERT_EQ(packed.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(packed.status().message().find(std::to_string(k)),
                absl::string_view::npos)
          << packed.status();
    }
  }
}

TEST(Pack, RefusesSizesThatOverflow) {
  const auto context = MakeContext(Target::Best());
  const uint8_t bytes[1] = {};
  const std::vector<const uint8_t*> rows(64, bytes);
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  for (const size_t k : {kMax / 256 * 256, kMax / 64 / 256 * 256,
                         kMax / 8192 * 256, kMax / 4096 / 256 * 256}) {
    for (const DType type : {DType::kF32, DType::kQ4_1, DType::kQ6_K}) {
      const auto packed = Pack(*context, type, k, rows);
      EXPECT_EQ(packed.status().code(), absl::StatusCode::kResourceExhausted)
          << k;
    }
  }
}

TEST(Pack, NoRows) {
  const auto context = MakeContext(Target::Best());
  const auto packed = Pack(*context, DType::kQ4_0, 32, {});
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->bytes(), 0u);
  EXPECT_TRUE(RunMatMul(*context, *packed, std::vector<float>(32), 1,
                        ActivationType::kNative)
                  .empty());
}

TEST(Activations, RefusesSizesThatOverflow) {
  Activations a;
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  EXPECT_EQ(a.Reserve(kMax, 2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(a.Reserve(2, kMax).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(a.Reserve(kMax / 4, kMax / 4).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(a.Reserve(3, 32).ok());
}

// The same activations may be held in all representations at once, and a
// smaller input may follow a larger one.
TEST(Activations, RepresentationsLieSideBySide) {
  const auto context = MakeContext(Target::Best());
  Activations a;
  ASSERT_TRUE(a.Reserve(9, 512).ok());
  for (const size_t k : {512, 64}) {
    const size_t m = k == 512 ? 9 : 5;
    const std::vector<float> x = TestRandom(k).Uniforms(m * k);
    for (const Representation representation :
         {Representation::kF32, Representation::kBF16, Representation::kInt8}) {
      a.Prepare(*context, x.data(), k, m, k, representation);
    }
    EXPECT_EQ(a.rows(), m);
    EXPECT_EQ(a.cols(), k);
    for (const DType type : {DType::kF32, DType::kBF16, DType::kQ4_1}) {
      const TestWeights w = MakeWeights(type, 3, k, 4);
      const PackedMatrix b = MustPack(*context, w, 3);
      std::vector<float> c(m * 3);
      MatMul(*context, a, ActivationType::kNative, b, c.data(), 3);
      for (size_t i = 0; i < m * 3; ++i) {
        EXPECT_EQ(c[i], DotReference(w, i % 3, x.data() + i / 3 * k,
                                     ActivationType::kNative));
      }
    }
  }
}

// Rounding of activations to bf16, seen through a unit matrix.
TEST(Activations, BF16OperandsAreRoundedAndFlushed) {
  const float quiet = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {
      1.0f,        0x1.01p0f, 0x1.03p0f, -0x1.010002p0f, 0x1p-56f, -0x1.fcp-57f,
      0x1.ffp-57f, 0x1p-140f, 3.4e38f,   -quiet,         65504.0f};
  const size_t k = x.size();
  TestWeights w{DType::kBF16, k, 2 * k, std::vector<uint8_t>(2 * k * k)};
  for (size_t i = 0; i < k; ++i) {
    StoreHalf(w.bytes.data() + (i * k + i) * 2, 0x3F80);
  }
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const PackedMatrix b = MustPack(*context, w, k);
    for (size_t i = 0; i < k; ++i) {
      std::vector<float> one(k, 0.0f);
      one[i] = x[i];
      const std::vector<float> c =
          RunMatMul(*context, b, one, 1, ActivationType::kNative);
      EXPECT_EQ(c[i], ToBF16Operand(x[i])) << i;
    }
  });
}

}  // namespace
}  // namespace lanewise
