// Pooling against the formulas of simd/pooling.h in plain code. Against
// recorded values: //tests/conformance/kernels.
#include "simd/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr RowPooling kAll[] = {
    RowPooling::kFirst, RowPooling::kLast,           RowPooling::kMean,
    RowPooling::kMax,   RowPooling::kMeanSqrtLength, RowPooling::kWeightedMean};

std::vector<float> Pooled(const Target& target, RowPooling pooling,
                          const std::vector<float>& x, size_t rows,
                          size_t width) {
  std::vector<float> out(width);
  Pool(target, pooling, {x.data(), rows, width, width}, out.data());
  return out;
}

// The header's formulas, step by step, so to the last bit.
std::vector<float> Reference(RowPooling pooling, const std::vector<float>& x,
                             size_t rows, size_t width) {
  std::vector<float> out(x.begin(), x.begin() + static_cast<long>(width));
  for (size_t r = 1; r < rows; ++r) {
    for (size_t i = 0; i < width; ++i) {
      const float v = x[r * width + i];
      switch (pooling) {
        case RowPooling::kFirst:
          break;
        case RowPooling::kLast:
          out[i] = v;
          break;
        case RowPooling::kMax:
          out[i] = std::max(out[i], v);
          break;
        case RowPooling::kMean:
        case RowPooling::kMeanSqrtLength:
          out[i] = out[i] + v;
          break;
        case RowPooling::kWeightedMean:
          out[i] = std::fma(v, static_cast<float>(r + 1), out[i]);
          break;
      }
    }
  }
  const float n = static_cast<float>(rows);
  float divisor = 1.0f;
  if (pooling == RowPooling::kMean) divisor = n;
  if (pooling == RowPooling::kMeanSqrtLength) divisor = std::sqrt(n);
  if (pooling == RowPooling::kWeightedMean) divisor = n * (n + 1) / 2;
  for (float& value : out) value /= divisor;
  return out;
}

TEST(Pooling, IsTheStatedChainOnEveryTarget) {
  ForEachTarget([&](const Target& target) {
    TestRandom random(5);
    for (const size_t rows : {1, 2, 3, 17, 130}) {
      for (const size_t width : {1, 3, 16, 33, 384}) {
        const std::vector<float> x = random.Uniforms(rows * width, -3, 3);
        for (const RowPooling pooling : kAll) {
          const std::vector<float> expected =
              Reference(pooling, x, rows, width);
          const std::vector<float> found =
              Pooled(target, pooling, x, rows, width);
          if (target.has_fma() || pooling != RowPooling::kWeightedMean) {
            ASSERT_EQ(found, expected) << rows << " rows of " << width;
          } else {
            for (size_t i = 0; i < width; ++i) {
              ASSERT_NEAR(found[i], expected[i], 1e-5);
            }
          }
        }
      }
    }
  });
}

TEST(Pooling, RowsApartAndInPlace) {
  ForEachTarget([&](const Target& target) {
    TestRandom random(6);
    const size_t rows = 5, width = 19, stride = 40;
    const std::vector<float> x = random.Uniforms(rows * stride);
    std::vector<float> dense;
    for (size_t r = 0; r < rows; ++r) {
      const auto row = x.begin() + static_cast<long>(r * stride);
      dense.insert(dense.end(), row, row + static_cast<long>(width));
    }
    for (const RowPooling pooling : kAll) {
      const std::vector<float> expected =
          Pooled(target, pooling, dense, rows, width);
      std::vector<float> inside = x;
      Pool(target, pooling, {inside.data(), rows, width, stride},
           inside.data());
      for (size_t i = 0; i < stride; ++i) {
        ASSERT_EQ(inside[i], i < width ? expected[i] : x[i]) << i;
      }
    }
  });
}

// Not a division by zero.
TEST(Pooling, M23NoRowsGiveZeros) {
  ForEachTarget([&](const Target& target) {
    for (const RowPooling pooling : kAll) {
      std::vector<float> out(37, 5.0f);
      Pool(target, pooling, {nullptr, 0, out.size(), out.size()}, out.data());
      EXPECT_EQ(out, std::vector<float>(37, 0.0f));
    }
  });
}

TEST(Pooling, NaNAndInfinitiesStayVisible) {
  ForEachTarget([&](const Target& target) {
    const std::vector<float> rows = {1.0f, kNaN, -kInfinity, 2.0f,  //
                                     kNaN, 3.0f, -kInfinity, kInfinity,
                                     4.0f, 2.0f, -kInfinity, 0.0f};
    const std::vector<float> maximum =
        Pooled(target, RowPooling::kMax, rows, 3, 4);
    EXPECT_TRUE(std::isnan(maximum[0]));
    EXPECT_TRUE(std::isnan(maximum[1]));
    EXPECT_EQ(maximum[2], -kInfinity);
    EXPECT_EQ(maximum[3], kInfinity);
    const std::vector<float> mean =
        Pooled(target, RowPooling::kMean, rows, 3, 4);
    EXPECT_TRUE(std::isnan(mean[0]) && std::isnan(mean[1]));
    EXPECT_EQ(mean[3], kInfinity);
  });
}

TEST(Pooling, L2NormalizeOfAnyLength) {
  std::vector<std::vector<float>> first;
  ForEachTarget([&](const Target& target) {
    TestRandom random(7);
    std::vector<std::vector<float>> results;
    for (const size_t n : {1, 2, 15, 16, 17, 384, 1000}) {
      std::vector<float> x = random.Uniforms(n, -9, 9);
      double squares = 0;
      for (const float value : x) squares += double{value} * value;
      const std::vector<float> before = x;
      L2Normalize(target, x.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(x[i], before[i] / std::sqrt(squares), 3e-7);
      }
      results.push_back(x);
    }
    if (first.empty()) first = results;
    if (target.has_fma()) {
      EXPECT_EQ(results, first);
    }
    // Below the smallest length, vectors grow by 1e12 and no more.
    std::vector<float> tiny = {0.0f, 3e-19f, 0.0f};
    L2Normalize(target, tiny.data(), tiny.size());
    EXPECT_NEAR(tiny[1], 3e-7f, 1e-12f);
    EXPECT_EQ(tiny[0], 0.0f);
  });
}

}  // namespace
}  // namespace lanewise
