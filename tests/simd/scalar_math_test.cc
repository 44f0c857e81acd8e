#include "simd/scalar_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

uint64_t Bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// |found − expected| in units of the last place of `expected`.
double UlpError(long double expected, double found) {
  const double rounded = static_cast<double>(expected);
  if (rounded == found) return 0;
  const double ulp =
      std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return static_cast<double>(std::abs(expected - found) / ulp);
}

double UniformDouble(TestRandom* random, double low, double high) {
  return low +
         (high - low) * static_cast<double>(random->Bits() >> 11) * 0x1p-53;
}

TEST(ScalarMath, ExpNearReference) {
  TestRandom random(1);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double range = i % 2 == 0 ? 2.0 : 708.0;
    const double x = UniformDouble(&random, -range, range);
    const double error =
        UlpError(std::exp(static_cast<long double>(x)), Exp(x));
    worst = std::max(worst, error);
    ASSERT_LT(error, 4) << x;
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  std::printf("exp: %.3f ulp\n", worst);
}

TEST(ScalarMath, ExpEdges) {
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-0.0), 1.0);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Bits(Exp(-kInfinity)), Bits(0.0));
  EXPECT_EQ(Exp(709.79), kInfinity);
  EXPECT_EQ(Bits(Exp(-708.1)), Bits(0.0));
  EXPECT_LT(Exp(709.78), kInfinity);
  EXPECT_GT(Exp(-707.9), 0.0);
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
}

TEST(ScalarMath, LogNearReference) {
  TestRandom random(2);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    double x;
    switch (i % 3) {
      case 0:
        x = UniformDouble(&random, 0.5, 2.0);
        break;
      case 1:
        x = 1.0 + UniformDouble(&random, -1e-3, 1e-3);
        break;
      default:
        x = std::ldexp(UniformDouble(&random, 1.0, 2.0),
                       static_cast<int>(random.Bits() % 2090) - 1070);
    }
    const double error =
        UlpError(std::log(static_cast<long double>(x)), Log(x));
    worst = std::max(worst, error);
    ASSERT_LT(error, 4) << x;
  }
  std::printf("log: %.3f ulp\n", worst);
}

TEST(ScalarMath, LogEdges) {
  EXPECT_EQ(Bits(Log(1.0)), Bits(0.0));
  EXPECT_EQ(Log(0.0), -kInfinity);
  EXPECT_EQ(Log(-0.0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1.0)));
  EXPECT_TRUE(std::isnan(Log(kNaN)));
  const double denormal = std::numeric_limits<double>::denorm_min();
  EXPECT_DOUBLE_EQ(Log(denormal), std::log(denormal));
}

TEST(ScalarMath, PowNearReference) {
  TestRandom random(3);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    double base;
    double y;
    switch (i % 3) {
      case 0:  // rotary frequencies
        base = UniformDouble(&random, 100.0, 1e7);
        y = UniformDouble(&random, -1.0, 1.0);
        break;
      case 1:  // lengths and penalties
        base = UniformDouble(&random, 1.0, 500.0);
        y = UniformDouble(&random, -3.0, 3.0);
        break;
      default:
        base = UniformDouble(&random, 0.01, 100.0);
        y = UniformDouble(&random, -150.0, 150.0);
    }
    const double error = UlpError(
        std::pow(static_cast<long double>(base), static_cast<long double>(y)),
        Pow(base, y));
    worst = std::max(worst, error);
    ASSERT_LT(error, 4) << base << " " << y;
  }
  std::printf("pow: %.3f ulp\n", worst);
}

TEST(ScalarMath, PowEdges) {
  EXPECT_EQ(Pow(5.0, 0.0), 1.0);
  EXPECT_EQ(Pow(1.0, 1e300), 1.0);
  EXPECT_EQ(Pow(2.0, 10.0), 1024.0);
  EXPECT_EQ(Pow(2.0, -1.0), 0.5);
  EXPECT_EQ(Pow(4.0, 0.5), 2.0);
  EXPECT_EQ(Pow(0.0, 2.0), 0.0);
  EXPECT_EQ(Pow(0.0, -2.0), kInfinity);
  EXPECT_EQ(Pow(kInfinity, 2.0), kInfinity);
  EXPECT_EQ(Pow(kInfinity, -2.0), 0.0);
  EXPECT_EQ(Pow(10.0, 1e300), kInfinity);
  EXPECT_EQ(Pow(10.0, -1e300), 0.0);
  EXPECT_EQ(Pow(2.0, kInfinity), kInfinity);
  EXPECT_EQ(Pow(2.0, -kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(Pow(-2.0, 0.5)));
  EXPECT_TRUE(std::isnan(Pow(kNaN, 0.5)));
  EXPECT_TRUE(std::isnan(Pow(2.0, kNaN)));
}

TEST(ScalarMath, SinAndCosNearReference) {
  TestRandom random(4);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    double x;
    switch (i % 4) {
      case 0:
        x = UniformDouble(&random, -4.0, 4.0);
        break;
      case 1:  // positions
        x = static_cast<double>(random.Bits() % 1000000);
        break;
      case 2:
        x = UniformDouble(&random, -0x1p30, 0x1p30);
        break;
      default:  // near multiples of π/2, where the reduction cancels
        x = static_cast<double>(random.Bits() % 600000000) * 1.5707963267948966;
    }
    const long double exact = x;
    const double sin_error = UlpError(std::sin(exact), Sin(x));
    const double cos_error = UlpError(std::cos(exact), Cos(x));
    worst = std::max(worst, std::max(sin_error, cos_error));
    ASSERT_LT(sin_error, 4) << x;
    ASSERT_LT(cos_error, 4) << x;
  }
  std::printf("sin, cos: %.3f ulp\n", worst);
}

// Values rounded from 300 binary digits; none is near the middle between two
// doubles.
TEST(ScalarMath, KnownBits) {
  EXPECT_EQ(Bits(Exp(1.0)), 0x4005BF0A8B145769u);
  EXPECT_EQ(Bits(Exp(-1.0)), 0x3FD78B56362CEF38u);
  EXPECT_EQ(Bits(Exp(1e-3)), 0x3FF0041919B7EE34u);
  EXPECT_EQ(Bits(Log(2.0)), 0x3FE62E42FEFA39EFu);
  EXPECT_EQ(Bits(Log(0.1)), 0xC0026BB1BBB55515u);
  EXPECT_EQ(Bits(Log(1e-300)), 0xC085963447F87FB5u);
  EXPECT_EQ(Bits(Log(1.0009765625)), 0x3F4FFC00AA8AB110u);
  EXPECT_EQ(Bits(Log(0.7)), 0xBFD6D3C324E13F50u);
  EXPECT_EQ(Bits(Pow(10000.0, -0.0625)), 0x3FE1FEB33C1C381Eu);
  EXPECT_EQ(Bits(Pow(500000.0, -0.984375)), 0x3EC4985FEC80A8CBu);
  EXPECT_EQ(Bits(Pow(1000000.0, -0.5)), 0x3F50624DD2F1A9FCu);
  EXPECT_EQ(Bits(Pow(1.5, 2.5)), 0x40060B9FD68A4554u);
  EXPECT_EQ(Bits(Sin(1.0)), 0x3FEAED548F090CEEu);
  EXPECT_EQ(Bits(Sin(100.0)), 0xBFE03425B78C4DB8u);
  EXPECT_EQ(Bits(Sin(131071.0)), 0xBFE268613F60BABCu);
  EXPECT_EQ(Bits(Sin(1e9)), 0x3FE1778CAE83C69Bu);
  EXPECT_EQ(Bits(Sin(3.141592653589793)), 0x3CA1A62633145C07u);
  EXPECT_EQ(Bits(Cos(-2.5)), 0xBFE9A2F7EF858B7Du);
  EXPECT_EQ(Bits(Cos(100.0)), 0x3FEB981DBF665FDFu);
  EXPECT_EQ(Bits(Cos(131071.0)), 0xBFEA2CEBBB513E7Cu);
  EXPECT_EQ(Bits(Cos(1.5707963267948966)), 0x3C91A62633145C07u);
}

TEST(ScalarMath, SinAndCosEdges) {
  EXPECT_EQ(Bits(Sin(0.0)), Bits(0.0));
  EXPECT_EQ(Bits(Sin(-0.0)), Bits(-0.0));
  EXPECT_EQ(Cos(0.0), 1.0);
  EXPECT_EQ(Sin(1e-300), 1e-300);
  EXPECT_TRUE(std::isnan(Sin(kInfinity)));
  EXPECT_TRUE(std::isnan(Cos(kNaN)));
  EXPECT_TRUE(std::isnan(Sin(0x1.8p30)));
}

}  // namespace
}  // namespace lanewise
