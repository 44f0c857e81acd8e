// Power spectra against the sum that defines them.
#include "model/features/fft.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

std::vector<double> Power(const RealFft& fft, const std::vector<double>& x) {
  // What lies in the scratch memory does not matter.
  std::vector<double> power(fft.bins()), scratch(fft.scratch_size(), 1e300);
  fft.Power(x.data(), power.data(), scratch.data());
  return power;
}

std::vector<double> Reference(const std::vector<double>& x) {
  const size_t n = x.size();
  std::vector<double> power;
  for (size_t k = 0; k <= n / 2; ++k) {
    double re = 0, im = 0;
    for (size_t j = 0; j < n; ++j) {
      const double angle =
          2 * M_PI * static_cast<double>(j * k % n) / static_cast<double>(n);
      re += x[j] * std::cos(angle);
      im -= x[j] * std::sin(angle);
    }
    power.push_back(re * re + im * im);
  }
  return power;
}

TEST(RealFft, EqualsItsDefinition) {
  TestRandom random(3);
  size_t sizes = 0;
  for (size_t n = 0; n <= 1000; ++n) {
    if (!RealFft::Supports(n)) continue;
    ++sizes;
    const RealFft fft(n);
    ASSERT_EQ(fft.size(), n);
    ASSERT_EQ(fft.bins(), n / 2 + 1);
    std::vector<double> x(n);
    for (double& value : x) value = random.Uniform(-1, 1);
    const std::vector<double> found = Power(fft, x), expected = Reference(x);
    const double largest = *std::max_element(expected.begin(), expected.end());
    for (size_t k = 0; k < found.size(); ++k) {
      ASSERT_NEAR(found[k], expected[k], 1e-12 * largest) << n << " " << k;
    }
  }
  EXPECT_EQ(sizes, 67u);
}

TEST(RealFft, TonesAndConstants) {
  const RealFft fft(400);
  for (const size_t bin : {0, 1, 7, 100, 199, 200}) {
    std::vector<double> x(400);
    for (size_t j = 0; j < 400; ++j) {
      x[j] = std::cos(2 * M_PI * static_cast<double>(bin * j) / 400.0);
    }
    const std::vector<double> power = Power(fft, x);
    const double amplitude = bin == 0 || bin == 200 ? 400.0 : 200.0;
    for (size_t k = 0; k <= 200; ++k) {
      EXPECT_NEAR(power[k], k == bin ? amplitude * amplitude : 0.0, 1e-8) << k;
    }
  }
}

TEST(RealFft, Sizes) {
  for (const size_t n : {2u, 4u, 6u, 10u, 400u, 512u, 480u, 65536u}) {
    EXPECT_TRUE(RealFft::Supports(n)) << n;
  }
  for (const size_t n : {0u, 1u, 3u, 5u, 14u, 401u, 402u, 131072u}) {
    EXPECT_FALSE(RealFft::Supports(n)) << n;
  }
  EXPECT_FALSE(RealFft::Supports(~size_t{0}));
}

}  // namespace
}  // namespace lanewise
