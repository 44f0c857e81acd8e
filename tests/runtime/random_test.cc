#include "runtime/random.h"

#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

// The vectors for philox4x32, 10 rounds, that the authors publish with their
// library Random123 (kat_vectors).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, PlaceIsCounterAndKey) {
  EXPECT_EQ(
      RandomBitsAt(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 {0xa4093822, 0x299f31d0}));
  // 0xe169c58d6627e8d5 >> 11, in units of 2^-53.
  EXPECT_EQ(UniformAt(0, 0, 0),
            std::ldexp(static_cast<double>(0xe169c58d6627e8d5 >> 11), -53));
}

TEST(Random, S5SeedStreamAndStepEachMatter) {
  std::set<double> seen;
  for (uint64_t seed : {0ull, 1ull, 42ull, ~0ull, 1ull << 32}) {
    for (uint64_t stream : {0ull, 1ull, 1ull << 32}) {
      for (uint64_t step : {0ull, 1ull, 2ull, 1ull << 32}) {
        seen.insert(UniformAt(seed, stream, step));
        EXPECT_EQ(UniformAt(seed, stream, step), UniformAt(seed, stream, step));
      }
    }
  }
  EXPECT_EQ(seen.size(), 5u * 3u * 4u);
}

TEST(Random, UniformInRangeAndEven) {
  constexpr int kDraws = 64000, kBins = 64;
  std::vector<int> counts(kBins);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = UniformAt(7, 3, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++counts[static_cast<int>(u * kBins)];
  }
  // Standard deviation of the mean: sqrt(1 / 12 / 64000) = 0.00114.
  EXPECT_NEAR(sum / kDraws, 0.5, 4 * 0.00114);
  double chi_square = 0;
  for (const int count : counts) {
    const double off = count - kDraws / kBins;
    chi_square += off * off / (kDraws / kBins);
  }
  // 63 degrees of freedom: the 99.99 % quantile is 113.5 and the 0.01 % one
  // 27.8. The numbers are fixed, so the test is too.
  EXPECT_LT(chi_square, 113.5);
  EXPECT_GT(chi_square, 27.8);
}

TEST(Random, SystemSeedsDiffer) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 16; ++i) seeds.insert(SeedFromSystem());
  EXPECT_EQ(seeds.size(), 16u);
}

}  // namespace
}  // namespace lanewise
