#include "simd/types.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rows of tests/data/types/blocks.txt: bytes as in a GGUF file and what the
// reference decodes them to.
struct Case {
  DType type;
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
};

std::vector<Case> ReadCases() {
  std::vector<Case> cases;
  std::ifstream file("tests/data/types/blocks.txt");
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, bytes, floats;
    fields >> name >> bytes >> floats;
    Case c;
    c.type = DTypeFromName(name).value();
    for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      c.bytes.push_back(static_cast<uint8_t>(
          std::strtoul(bytes.substr(i, 2).c_str(), nullptr, 16)));
    }
    for (size_t i = 0; i + 8 <= floats.size(); i += 8) {
      c.floats.push_back(FloatOf(static_cast<uint32_t>(
          std::strtoul(floats.substr(i, 8).c_str(), nullptr, 16))));
    }
    cases.push_back(c);
  }
  return cases;
}

TEST(Types, DecodesAsTheReferenceDoes) {
  std::map<DType, int> seen;
  for (const Case& c : ReadCases()) {
    const DTypeTraits& traits = Traits(c.type);
    SCOPED_TRACE(std::string(traits.name));
    ++seen[c.type];
    ASSERT_EQ(BytesOf(c.type, c.floats.size()), c.bytes.size());
    // Misaligned on purpose: files promise nothing.
    std::vector<uint8_t> shifted(c.bytes.size() + 1);
    std::memcpy(shifted.data() + 1, c.bytes.data(), c.bytes.size());
    std::vector<float> out(c.floats.size());
    traits.decode(shifted.data() + 1, out.size(), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(c.floats[i])) {
        EXPECT_TRUE(std::isnan(out[i])) << i;
      } else if (c.type == DType::kQ4_K || c.type == DType::kQ5_K ||
                 c.type == DType::kQ2_K) {
        // One rounding, at the subtraction, relative to its operands.
        EXPECT_NEAR(out[i], c.floats[i], 1e-6 * std::abs(c.floats[i])) << i;
      } else {
        EXPECT_EQ(out[i], c.floats[i]) << i;
      }
    }
  }
  EXPECT_EQ(seen.size(), 15u);
}

TEST(Types, NamesAndSizes) {
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    const DType type = static_cast<DType>(i);
    const DTypeTraits& traits = Traits(type);
    EXPECT_EQ(DTypeFromName(traits.name), type);
    EXPECT_GT(traits.block_bytes, 0u);
    EXPECT_TRUE(traits.block_size == 1 || traits.block_size == 32 ||
                traits.block_size == 256);
  }
  EXPECT_EQ(DTypeFromName("q4_k"), DType::kQ4_K);
  EXPECT_EQ(DTypeFromName("Q4"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
  EXPECT_EQ(BytesOf(DType::kQ6_K, 512), 420u);
  EXPECT_EQ(Traits(DType::kI32).decode, nullptr);
  EXPECT_EQ(Traits(DType::kBool).decode, nullptr);
}

// The value of a half by its definition, in double.
double HalfByDefinition(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

TEST(Types, EveryHalf) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = F32FromF16(half);
    if ((bits & 0x7C00) == 0x7C00) {
      EXPECT_EQ(std::isnan(value), (bits & 0x3FF) != 0) << bits;
      EXPECT_EQ(std::isinf(value), (bits & 0x3FF) == 0) << bits;
      EXPECT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
      if (std::isinf(value)) {
        EXPECT_EQ(F16FromF32(value), half);
      }
      continue;
    }
    ASSERT_EQ(value, HalfByDefinition(half)) << bits;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    ASSERT_EQ(F16FromF32(value), half) << bits;
  }
}

TEST(Types, HalfRoundsToNearestEven) {
  // Between each pair of neighbours: the middle goes to the even one, what is
  // next to it to the nearer one. The last pair's upper end is 65536.
  for (uint16_t low = 0; low < 0x7C00; ++low) {
    const double a = HalfByDefinition(low);
    const double b = low == 0x7BFF ? 65536.0 : HalfByDefinition(low + 1);
    const float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(middle, (a + b) / 2);
    const uint16_t even = static_cast<uint16_t>(low + (low & 1));
    ASSERT_EQ(F16FromF32(middle), even) << low;
    ASSERT_EQ(F16FromF32(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(F16FromF32(std::nextafter(middle, 1e9f)), low + 1);
    ASSERT_EQ(F16FromF32(-middle), even | 0x8000);
  }
  EXPECT_EQ(F16FromF32(70000.0f), 0x7C00);
  EXPECT_EQ(F16FromF32(-std::numeric_limits<float>::max()), 0xFC00);
  EXPECT_EQ(F16FromF32(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(F16FromF32(-0.0f), 0x8000);
  const uint16_t nan = F16FromF32(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(F32FromF16(nan)));
  // A NaN whose payload lies in the bits that are dropped.
  EXPECT_TRUE(std::isnan(F32FromF16(F16FromF32(FloatOf(0x7F800001)))));
}

TEST(Types, BFloat16) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t b = static_cast<uint16_t>(bits);
    const float value = F32FromBF16(b);
    ASSERT_EQ(BitsOf(value), bits << 16);
    if (!std::isnan(value)) {
      ASSERT_EQ(BF16FromF32(value), b);
    } else {
      ASSERT_TRUE(std::isnan(F32FromBF16(BF16FromF32(value))));
    }
  }
  EXPECT_EQ(BF16FromF32(FloatOf(0x3F808000)), 0x3F80);  // tie, even below
  EXPECT_EQ(BF16FromF32(FloatOf(0x3F818000)), 0x3F82);  // tie, even above
  EXPECT_EQ(BF16FromF32(FloatOf(0x3F808001)), 0x3F81);
  EXPECT_EQ(BF16FromF32(FloatOf(0x3F807FFF)), 0x3F80);
  EXPECT_EQ(BF16FromF32(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(BF16FromF32(FloatOf(0x00008000)), 0x0000);  // denormal tie
  EXPECT_EQ(BF16FromF32(FloatOf(0x00018000)), 0x0002);
  EXPECT_TRUE(std::isnan(F32FromBF16(BF16FromF32(FloatOf(0x7F800001)))));
}

TEST(Types, F8E4M3) {
  for (int bits = 0; bits < 256; ++bits) {
    const uint8_t byte = static_cast<uint8_t>(bits);
    float out;
    Traits(DType::kF8E4M3).decode(&byte, 1, &out);
    if ((bits & 127) == 127) {
      EXPECT_TRUE(std::isnan(out)) << bits;
      continue;
    }
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, -9)
                                 : std::ldexp(mantissa + 8, exponent - 10);
    EXPECT_EQ(out, bits >> 7 ? -magnitude : magnitude) << bits;
    EXPECT_EQ(std::signbit(out), bits >> 7 != 0) << bits;
  }
}

TEST(Types, PlainTypes) {
  const double doubles[] = {0.1, -2.5e100, 1e39, 1.0};
  uint8_t bytes[sizeof(doubles)];
  std::memcpy(bytes, doubles, sizeof(doubles));
  float out[4];
  Traits(DType::kF64).decode(bytes, 4, out);
  EXPECT_EQ(out[0], 0.1f);
  EXPECT_EQ(out[1], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(out[2], std::numeric_limits<float>::infinity());
  EXPECT_EQ(out[3], 1.0f);
  const uint8_t small[] = {0x80, 0xFF, 0x00, 0x7F};
  Traits(DType::kI8).decode(small, 4, out);
  EXPECT_EQ(out[0], -128.0f);
  EXPECT_EQ(out[1], -1.0f);
  EXPECT_EQ(out[3], 127.0f);
  Traits(DType::kU8).decode(small, 4, out);
  EXPECT_EQ(out[0], 128.0f);
  EXPECT_EQ(out[1], 255.0f);
}

TEST(Types, MXFP4ScaleRange) {
  // 2^(e − 127) · 0.5 over all e; code 1 is 0.5.
  for (int e = 0; e < 255; ++e) {
    BlockMXFP4 block = {};
    block.e = static_cast<uint8_t>(e);
    block.q[0] = 0xF1;  // 0.5 and -6
    float out[32];
    Traits(DType::kMXFP4).decode(reinterpret_cast<uint8_t*>(&block), 32, out);
    EXPECT_EQ(out[0], std::ldexp(0.5, e - 127)) << e;
    if (e < 250) {
      EXPECT_EQ(out[16], std::ldexp(-6.0, e - 127)) << e;
    }
    EXPECT_EQ(out[1], 0.0f);
  }
}

}  // namespace
}  // namespace lanewise
