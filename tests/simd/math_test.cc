// Exp, Sigmoid, Tanh and NormalCdf of simd/math-inl.h over the whole range of
// floats, against the C library in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/math_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/elementwise-inl.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

template <class Function>
void Map(const float* x, size_t n, float* y, Function function) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, n, y,
                [&](auto load) HWY_ATTR { return function(d, load(x)); });
}

void ExpImpl(const float* x, size_t n, float* y) {
  Map(x, n, y, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
}
void SigmoidImpl(const float* x, size_t n, float* y) {
  Map(x, n, y, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
}
void TanhImpl(const float* x, size_t n, float* y) {
  Map(x, n, y, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
}
void NormalCdfImpl(const float* x, size_t n, float* y) {
  Map(x, n, y, [](auto d, auto v) HWY_ATTR { return NormalCdf(d, v); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

HWY_EXPORT(ExpImpl);
HWY_EXPORT(SigmoidImpl);
HWY_EXPORT(TanhImpl);
HWY_EXPORT(NormalCdfImpl);

using Kernel = void (*)(const float*, size_t, float*);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallest = std::numeric_limits<float>::min();

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Every 2053rd float from -inf to inf, ascending, and both ends.
std::vector<float> AllFloats() {
  constexpr uint32_t kInfinityBits = 0x7F800000u;
  std::vector<float> x;
  for (uint32_t bits = 0; bits < kInfinityBits; bits += 2053) {
    x.push_back(FromBits((kInfinityBits - bits) | 0x80000000u));
  }
  for (uint32_t bits = 0; bits < kInfinityBits; bits += 2053) {
    x.push_back(FromBits(bits));
  }
  x.push_back(kInfinity);
  return x;
}

// Checks `found` against function(x) in units of the last place; results that
// would be denormal may be 0.
template <class Function, class Bound>
void ExpectNear(const std::vector<float>& x, const std::vector<float>& found,
                Function function, Bound bound) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = function(static_cast<double>(x[i]));
    const float rounded = static_cast<float>(expected);
    if (std::abs(rounded) < kSmallest || std::isinf(rounded)) {
      ASSERT_NEAR(found[i], std::isinf(rounded) ? rounded : 0.0f, kSmallest)
          << x[i];
      continue;
    }
    const double ulp = std::nextafter(std::abs(rounded), kInfinity) -
                       static_cast<double>(std::abs(rounded));
    const double error = std::abs(found[i] - expected) / ulp;
    worst = std::max(worst, error);
    ASSERT_LE(error, bound(x[i])) << x[i];
  }
  std::printf("worst %.3f ulp\n", worst);
}

void ExpectAscending(const std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 1; i < y.size(); ++i) ASSERT_LE(y[i - 1], y[i]) << x[i];
}

// Runs `kernel_of(target)` over all floats on each target: near the reference,
// ascending, and the same bits on targets with fused multiply-add.
template <class KernelOf, class Function, class Bound>
void CheckEverywhere(KernelOf kernel_of, Function function, Bound bound) {
  const std::vector<float> x = AllFloats();
  std::vector<float> first;
  ForEachTarget([&](const Target& target) {
    std::vector<float> y(x.size());
    kernel_of(target)(x.data(), x.size(), y.data());
    ExpectNear(x, y, function,
               [&](float value) { return bound(target, value); });
    ExpectAscending(x, y);
    if (!target.has_fma()) return;
    if (first.empty()) first = y;
    ASSERT_EQ(0, std::memcmp(first.data(), y.data(), y.size() * sizeof(float)));
  });
}

TEST(Math, ExpEverywhere) {
  CheckEverywhere(
      [](const Target& target) -> Kernel {
        return LANEWISE_DISPATCH(target, ExpImpl);
      },
      [](double x) { return std::exp(x); },
      [](const Target&, float) { return 1.1; });
}

TEST(Math, SigmoidEverywhere) {
  CheckEverywhere(
      [](const Target& target) -> Kernel {
        return LANEWISE_DISPATCH(target, SigmoidImpl);
      },
      [](double x) { return 1 / (1 + std::exp(-x)); },
      [](const Target&, float) { return 2.5; });
}

TEST(Math, TanhEverywhere) {
  CheckEverywhere(
      [](const Target& target) -> Kernel {
        return LANEWISE_DISPATCH(target, TanhImpl);
      },
      [](double x) { return std::tanh(x); },
      [](const Target&, float) { return 1.5; });
}

TEST(Math, NormalCdfEverywhere) {
  CheckEverywhere(
      [](const Target& target) -> Kernel {
        return LANEWISE_DISPATCH(target, NormalCdfImpl);
      },
      [](double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); },
      [](const Target& target, float x) {
        return target.has_fma() || x > 0 ? 7.0 : 7.0 + 0.5 * x * x;
      });
}

// The attention and the samplers rely on these.
TEST(Math, ExactValues) {
  ForEachTarget([](const Target& target) {
    const std::vector<float> x = {0.0f,     -0.0f,  -kInfinity,
                                  -87.34f,  -1e30f, kInfinity,
                                  88.7229f, kNaN,   88.7228f};
    const size_t n = x.size();
    std::vector<float> y(n);
    LANEWISE_DISPATCH(target, ExpImpl)(x.data(), n, y.data());
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    for (int i = 2; i < 5; ++i) EXPECT_EQ(Bits(y[i]), 0u);
    EXPECT_EQ(y[5], kInfinity);
    EXPECT_EQ(y[6], kInfinity);
    EXPECT_TRUE(std::isnan(y[7]));
    EXPECT_LT(y[8], kInfinity);

    LANEWISE_DISPATCH(target, TanhImpl)(x.data(), n, y.data());
    EXPECT_EQ(Bits(y[0]), Bits(0.0f));
    EXPECT_EQ(Bits(y[1]), Bits(-0.0f));
    EXPECT_EQ(y[2], -1.0f);
    EXPECT_EQ(y[5], 1.0f);
    EXPECT_TRUE(std::isnan(y[7]));

    LANEWISE_DISPATCH(target, SigmoidImpl)(x.data(), n, y.data());
    EXPECT_EQ(y[0], 0.5f);
    EXPECT_EQ(Bits(y[2]), 0u);
    EXPECT_EQ(y[5], 1.0f);
    EXPECT_TRUE(std::isnan(y[7]));

    LANEWISE_DISPATCH(target, NormalCdfImpl)(x.data(), n, y.data());
    EXPECT_EQ(y[0], 0.5f);
    EXPECT_EQ(y[1], 0.5f);
    EXPECT_EQ(Bits(y[2]), 0u);
    EXPECT_EQ(Bits(y[4]), 0u);
    EXPECT_EQ(y[5], 1.0f);
    EXPECT_TRUE(std::isnan(y[7]));
  });
}

TEST(Math, TanhOfDenormalIsTheDenormal) {
  ForEachTarget([](const Target& target) {
    const std::vector<float> x = {1e-45f, -1e-45f, 1e-40f, -3e-39f, 1e-20f};
    std::vector<float> y(x.size());
    LANEWISE_DISPATCH(target, TanhImpl)(x.data(), x.size(), y.data());
    EXPECT_EQ(x, y);
  });
}

}  // namespace
}  // namespace lanewise
#endif  // HWY_ONCE
