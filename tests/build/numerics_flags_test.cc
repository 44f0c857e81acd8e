// The compiler must round where the source says so, whatever flags an embedding
// project puts on the command line (docs/design.md, section 2).
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

#ifdef __FAST_MATH__
#error "-ffast-math reached this file: lanewise.bzl does not undo it"
#endif

namespace lanewise {
namespace {

// Hides a value from the optimizer.
template <typename T>
T Opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

TEST(NumericsFlags, ProductAndSumAreNotContracted) {
  // a * b = 1 - 2^-46, which rounds to 1 in float: unfused the result is 0.
  const float a = Opaque(1.0f + 0x1p-23f);
  const float b = Opaque(1.0f - 0x1p-23f);
  const float c = Opaque(-1.0f);
  EXPECT_EQ(a * b + c, 0.0f);
  EXPECT_EQ(std::fma(a, b, c), -0x1p-46f);
}

TEST(NumericsFlags, SumsAreNotReassociated) {
  const float big = Opaque(0x1p30f);
  const float one = Opaque(1.0f);
  EXPECT_EQ((one + big) - big, 0.0f);
  float values[64];
  values[0] = Opaque(0x1p24f);
  for (int i = 1; i < 64; ++i) values[i] = Opaque(1.0f);
  float sum = 0.0f;
  for (float value : values) sum += value;
  // Each 1 is lost on its own; a vectorized sum would keep some.
  EXPECT_EQ(sum, 0x1p24f);
}

TEST(NumericsFlags, DivisionIsNotAReciprocalProduct) {
  for (int i = 1; i < 200; ++i) {
    const float x = Opaque(static_cast<float>(i));
    const float y = Opaque(static_cast<float>(i + 6));
    const float exact = static_cast<float>(static_cast<double>(x) / y);
    EXPECT_EQ(x / y, exact) << i;
  }
}

TEST(NumericsFlags, NanInfinityAndSignedZeroExist) {
  const float nan = Opaque(std::numeric_limits<float>::quiet_NaN());
  const float inf = Opaque(std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(nan));
  EXPECT_FALSE(nan == nan);
  EXPECT_TRUE(std::isnan(inf - inf));
  EXPECT_TRUE(std::isinf(inf));
  const float zero = Opaque(-0.0f) + Opaque(-0.0f);
  EXPECT_TRUE(std::signbit(zero));
  EXPECT_FALSE(std::signbit(Opaque(-0.0f) + Opaque(0.0f)));
}

TEST(NumericsFlags, SubnormalsAreKept) {
  const float smallest = Opaque(std::numeric_limits<float>::min());
  const float half = smallest * Opaque(0.5f);
  uint32_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  EXPECT_EQ(bits, 0x00400000u);
}

}  // namespace
}  // namespace lanewise
