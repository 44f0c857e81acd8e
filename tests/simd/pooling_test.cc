// Pooling against recorded values (tests/data/kernels/pooling.*) and against
// the formulas of simd/pooling.h in plain code.
#include "simd/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "simd/vector_ops.h"
#include "tests/simd/golden_topic.h"
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

TEST(Pooling, M17EqualsTheRecordedValues) {
  const GoldenTopic topic("pooling");
  const std::vector<std::pair<std::string, RowPooling>> names = {
      {"mean", RowPooling::kMean},
      {"max", RowPooling::kMax},
      {"cls", RowPooling::kFirst},
      {"last", RowPooling::kLast}};
  ForEachTarget([&](const Target& target) {
    size_t compared = 0;
    for (const auto& golden : topic.cases()) {
      const auto name =
          std::find_if(names.begin(), names.end(), [&](const auto& entry) {
            return entry.first == golden["name"].get<std::string>();
          });
      if (name == names.end()) continue;
      SCOPED_TRACE(name->first);
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      const GoldenArray* mask = topic.Find(golden, "inputs", "mask");
      const GoldenArray* unit = topic.Find(golden, "outputs", "normalized");
      ASSERT_TRUE(x != nullptr && y != nullptr);
      const size_t width = x->width, length = x->rows() / y->rows();
      for (size_t b = 0; b < y->rows(); ++b) {
        // The mean is over the tokens that are there.
        std::vector<float> rows;
        for (size_t r = 0; r < length; ++r) {
          if (mask != nullptr && mask->row(b)[r] == 0.0f) continue;
          const float* row = x->row(b * length + r);
          rows.insert(rows.end(), row, row + width);
        }
        std::vector<float> out =
            Pooled(target, name->second, rows, rows.size() / width, width);
        for (size_t i = 0; i < width; ++i) {
          ASSERT_NEAR(out[i], y->row(b)[i], 1e-6) << b << " " << i;
        }
        if (unit == nullptr) continue;
        L2Normalize(target, out.data(), width);
        for (size_t i = 0; i < width; ++i) {
          ASSERT_NEAR(out[i], unit->row(b)[i], 1e-6) << b << " " << i;
        }
      }
      ++compared;
    }
    EXPECT_EQ(compared, 4u);
  });
}

TEST(Pooling, CrossEntropyIsTheLogSumLessTheLabelsLogit) {
  const GoldenTopic topic("pooling");
  ForEachTarget([&](const Target& target) {
    size_t compared = 0;
    for (const auto& golden : topic.cases()) {
      if (golden["name"] != "cross_entropy") continue;
      const GoldenArray* logits = topic.Find(golden, "inputs", "logits");
      const GoldenArray* labels = topic.Find(golden, "inputs", "labels");
      const GoldenArray* nll = topic.Find(golden, "outputs", "nll");
      const GoldenArray* mean = topic.Find(golden, "outputs", "mean");
      ASSERT_TRUE(logits && labels && nll && mean);
      double sum = 0;
      for (size_t r = 0; r < logits->rows(); ++r) {
        const float* row = logits->row(r);
        const double found = LogSumExp(target, row, logits->width) -
                             row[static_cast<size_t>(labels->values[r])];
        EXPECT_NEAR(found, nll->values[r], 1e-5) << r;
        sum += found;
      }
      EXPECT_NEAR(sum / static_cast<double>(logits->rows()), mean->values[0],
                  1e-6);
      ++compared;
    }
    EXPECT_EQ(compared, 1u);
  });
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
