#include "simd/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kSizes[] = {1,  2,  7,   8,    13,   15,   16,   17,  31,
                             33, 65, 100, 1000, 1023, 1024, 1025, 5000};

TEST(VectorOps, AddToScaleAndSoftCap) {
  ForEachTarget([](const Target& target) {
    TestRandom random(1);
    for (const size_t n : kSizes) {
      const std::vector<float> x = random.Uniforms(n, -50, 50);
      const std::vector<float> y = random.Uniforms(n + 2, -50, 50);
      std::vector<float> sum = y;
      AddTo(target, x.data(), n, sum.data() + 1);
      std::vector<float> scaled = y;
      Scale(target, 0.3f, n, scaled.data() + 1);
      std::vector<float> capped = y;
      SoftCap(target, 30.0f, n, capped.data() + 1);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum[i + 1], y[i + 1] + x[i]);
        ASSERT_EQ(scaled[i + 1], y[i + 1] * 0.3f);
        const double expected = 30.0 * std::tanh(y[i + 1] / 30.0);
        ASSERT_NEAR(capped[i + 1], expected, std::abs(expected) * 4e-7);
      }
      for (const auto* v : {&sum, &scaled, &capped}) {
        ASSERT_EQ(v->front(), y.front());
        ASSERT_EQ(v->back(), y.back());
      }
    }
  });
}

TEST(VectorOps, SoftmaxNearReferenceAndSameBits) {
  std::vector<std::vector<float>> first;
  ForEachTarget([&](const Target& target) {
    TestRandom random(2);
    std::vector<std::vector<float>> results;
    for (const size_t n : kSizes) {
      for (const float range : {1.0f, 20.0f, 1e4f}) {
        std::vector<float> x = random.Uniforms(n, -range, range);
        if (n > 3) x[n / 2] = -kInfinity;
        const double maximum = *std::max_element(x.begin(), x.end());
        double sum = 0;
        for (const float value : x) sum += std::exp(value - maximum);
        std::vector<float> y = x;
        Softmax(target, n, y.data());
        for (size_t i = 0; i < n; ++i) {
          const double expected = std::exp(x[i] - maximum) / sum;
          // x − max is rounded: at most 2^-24 · 90 where exp is not 0.
          ASSERT_NEAR(y[i], expected, expected * 1e-5 + 1e-37) << n;
        }
        results.push_back(y);
      }
    }
    if (first.empty()) first = results;
    if (target.has_fma()) {
      ASSERT_EQ(first, results);
    }
  });
}

// The order of docs/design.md, section 2: e = e^-16.7 vanishes beside 1, but
// many of them do not where they are added before it.
TEST(VectorOps, SoftmaxSumsInSixteenLanes) {
  ForEachTarget([](const Target& target) {
    for (const size_t n : kSizes) {
      std::vector<float> x(n, -16.7f);
      x[n / 2] = 0.0f;
      std::vector<float> single = {-16.7f, 0.0f};
      Softmax(target, 2, single.data());
      ASSERT_EQ(single[1], 1.0f);  // 1 + e is 1
      const float e = single[0];
      float lanes[16] = {};
      for (size_t i = 0; i < n; ++i) lanes[i % 16] += i == n / 2 ? 1.0f : e;
      for (const size_t step : {8, 4, 2, 1}) {
        for (size_t i = 0; i < step; ++i) lanes[i] += lanes[i + step];
      }
      Softmax(target, n, x.data());
      ASSERT_EQ(x[n / 2], 1.0f / lanes[0]) << n;
      if (n > 1) {
        ASSERT_EQ(x[0], e / lanes[0]) << n;
      }
    }
  });
}

TEST(VectorOps, SoftmaxOfNothingVisible) {
  ForEachTarget([](const Target& target) {
    for (const size_t n : kSizes) {
      std::vector<float> x(n, -kInfinity);
      EXPECT_EQ(LogSumExp(target, x.data(), n), -kInfinity);
      Softmax(target, n, x.data());
      EXPECT_EQ(x, std::vector<float>(n, 0.0f));
    }
    float nothing = 5.0f;
    Softmax(target, 0, &nothing);
    EXPECT_EQ(nothing, 5.0f);
    EXPECT_EQ(LogSumExp(target, &nothing, 0), -kInfinity);
  });
}

TEST(VectorOps, SoftmaxExtremes) {
  ForEachTarget([](const Target& target) {
    const float lowest = std::numeric_limits<float>::lowest();
    std::vector<float> x = {lowest, lowest, lowest, lowest};
    Softmax(target, 4, x.data());
    EXPECT_EQ(x, std::vector<float>(4, 0.25f));
    x = {lowest, 1.0f, -lowest, lowest};
    Softmax(target, 4, x.data());
    EXPECT_EQ(x, (std::vector<float>{0.0f, 0.0f, 1.0f, 0.0f}));
    x = {1.0f, kNaN, 2.0f};
    Softmax(target, 3, x.data());
    for (const float value : x) EXPECT_TRUE(std::isnan(value));
    x = {-kInfinity, kNaN};
    Softmax(target, 2, x.data());
    EXPECT_TRUE(std::isnan(x[0]) || std::isnan(x[1]));
  });
}

TEST(VectorOps, LogSumExpNearReferenceAndSameBits) {
  std::vector<double> first;
  ForEachTarget([&](const Target& target) {
    TestRandom random(4);
    std::vector<double> results;
    for (const size_t n : kSizes) {
      std::vector<float> x = random.Uniforms(n, -20, 20);
      const double maximum = *std::max_element(x.begin(), x.end());
      double sum = 0;
      for (const float value : x) sum += std::exp(value - maximum);
      const double found = LogSumExp(target, x.data(), n);
      EXPECT_NEAR(found, maximum + std::log(sum), 1e-6);
      results.push_back(found);
    }
    if (first.empty()) first = results;
    if (target.has_fma()) {
      EXPECT_EQ(first, results);
    }
  });
}

TEST(VectorOps, ArgMaxTakesTheLowestOfEqual) {
  ForEachTarget([](const Target& target) {
    TestRandom random(5);
    for (const size_t n :
         {size_t{1}, size_t{2}, size_t{17}, size_t{1024}, size_t{1025},
          size_t{2050}, size_t{49152}, size_t{256001}}) {
      std::vector<float> x(n);
      // Few distinct values: many ties.
      for (float& value : x) value = static_cast<float>(random.Bits() % 5);
      for (int i = 0; i < 20; ++i) {
        const size_t a = random.Bits() % n;
        const size_t b = random.Bits() % n;
        const float old_a = x[a];
        const float old_b = x[b];
        x[a] = x[b] = 4.0f + static_cast<float>(i % 2);
        const size_t expected =
            std::max_element(x.begin(), x.end()) - x.begin();
        ASSERT_EQ(ArgMax(target, x.data(), n), expected);
        x[a] = old_a;
        x[b] = old_b;
      }
    }
    const float negative[] = {-kInfinity, -kInfinity, -3.0f, -kInfinity};
    EXPECT_EQ(ArgMax(target, negative, 4), 2u);
    EXPECT_EQ(ArgMax(target, negative, 2), 0u);
    const float zeros[] = {-1.0f, -0.0f, 0.0f, 0.0f};
    EXPECT_EQ(ArgMax(target, zeros, 4), 1u);
  });
}

TEST(VectorOps, S1ArgMaxOfTie) {
  ForEachTarget([](const Target& target) {
    const float logits[] = {1.0f, 2.0f, 2.0f};
    EXPECT_EQ(ArgMax(target, logits, 3), 1u);
  });
}

TEST(VectorOps, AllFiniteFindsEachPosition) {
  ForEachTarget([](const Target& target) {
    TestRandom random(6);
    for (const size_t n : {0, 1, 15, 16, 33, 130}) {
      std::vector<float> x = random.Uniforms(n, -1e38f, 1e38f);
      if (n > 0) x[0] = std::numeric_limits<float>::max();
      if (n > 1) x[1] = 1e-45f;
      EXPECT_TRUE(AllFinite(target, x.data(), n));
      for (size_t i = 0; i < n; ++i) {
        for (const float bad : {kNaN, kInfinity, -kInfinity}) {
          const float old = x[i];
          x[i] = bad;
          ASSERT_FALSE(AllFinite(target, x.data(), n)) << i;
          x[i] = old;
        }
      }
    }
  });
}

TEST(VectorOps, TopKEqualsSort) {
  ForEachTarget([](const Target& target) {
    TestRandom random(7);
    for (const size_t n : {1, 2, 16, 40, 1000, 49152}) {
      for (const uint64_t distinct : {3, 1000000}) {
        std::vector<float> x(n);
        std::vector<IndexedValue> sorted(n);
        for (size_t i = 0; i < n; ++i) {
          x[i] = static_cast<float>(random.Bits() % distinct) - 1.0f;
          sorted[i] = {x[i], static_cast<int32_t>(i)};
        }
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const IndexedValue& a, const IndexedValue& b) {
                           return a.value > b.value;
                         });
        for (const size_t k : {size_t{0}, size_t{1}, size_t{5}, size_t{40},
                               size_t{3000}, n, n + 1}) {
          const size_t kept = std::min(k, n);
          std::vector<IndexedValue> top(kept + 1, {-9.0f, -9});
          ASSERT_EQ(TopK(target, x.data(), n, k, top.data()), kept);
          for (size_t i = 0; i < kept; ++i) {
            ASSERT_EQ(top[i].index, sorted[i].index) << n << " " << k;
            ASSERT_EQ(top[i].value, sorted[i].value);
          }
          ASSERT_EQ(top[kept].index, -9);
        }
      }
    }
  });
}

TEST(VectorOps, TopKWithInfinities) {
  ForEachTarget([](const Target& target) {
    std::vector<float> x(50, -kInfinity);
    x[31] = kInfinity;
    x[7] = 1.0f;
    IndexedValue top[4];
    ASSERT_EQ(TopK(target, x.data(), x.size(), 4, top), 4u);
    EXPECT_EQ(top[0].index, 31);
    EXPECT_EQ(top[1].index, 7);
    EXPECT_EQ(top[2].index, 0);
    EXPECT_EQ(top[3].index, 1);
  });
}

}  // namespace
}  // namespace lanewise
