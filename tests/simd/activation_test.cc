#include "simd/activation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

constexpr Activation kAll[] = {
    Activation::kIdentity,  Activation::kRelu, Activation::kReluSquared,
    Activation::kSilu,      Activation::kGelu, Activation::kGeluTanh,
    Activation::kQuickGelu, Activation::kTanh, Activation::kSigmoid};

double Reference(Activation activation, double x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kReluSquared:
      return x < 0 ? 0 : x * x;
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::kGeluTanh:
      // 1 + tanh u = 2 / (1 + e^-2u)
      return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) *
                               (x + 0.044715 * x * x * x)));
    case Activation::kQuickGelu:
      return x / (1 + std::exp(-static_cast<double>(1.702f) * x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return 0;
}

// Roundings in the argument of the exponential, constants included.
int ArgumentRoundings(const Target& target, Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return target.has_fma() ? 0 : 1;
    case Activation::kGeluTanh:
      return target.has_fma() ? 4 : 5;
    case Activation::kQuickGelu:
      return 1;
    default:
      return 0;
  }
}

// Inputs of all magnitudes, denormals and both zeros among them.
std::vector<float> Inputs() {
  std::vector<float> x = {0.0f, -0.0f, 1e-45f, -1e-45f, 1e-38f, -1e-38f};
  for (float value = 1e-30f; value < 1e30f; value *= 1.37f) {
    x.push_back(value);
    x.push_back(-value);
  }
  for (float value = -20.0f; value < 20.0f; value += 0.0007f) {
    x.push_back(value);
  }
  return x;
}

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

TEST(Activation, NearReferenceEverywhere) {
  const std::vector<float> x = Inputs();
  ForEachTarget([&](const Target& target) {
    for (const Activation activation : kAll) {
      SCOPED_TRACE(static_cast<int>(activation));
      std::vector<float> y = x;
      Activate(target, activation, y.data(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = Reference(activation, x[i]);
        if (expected > std::numeric_limits<float>::max()) {
          ASSERT_EQ(y[i], kInfinity) << x[i];
          continue;
        }
        // A rounding in the argument u of e^u counts |u| times.
        const double u = std::min(std::abs(std::log(std::abs(expected))), 88.0);
        const double tolerance =
            std::abs(expected) *
                (6 + u * ArgumentRoundings(target, activation)) * 0x1p-24 +
            // factors that would be denormal are 0
            std::max(1.0f, std::abs(x[i])) * std::numeric_limits<float>::min();
        ASSERT_NEAR(y[i], expected, tolerance) << x[i];
      }
    }
  });
}

TEST(Activation, SameBitsOnTargetsWithFma) {
  const std::vector<float> x = Inputs();
  for (const Activation activation : kAll) {
    std::vector<float> first;
    ForEachTarget([&](const Target& target) {
      if (!target.has_fma()) return;
      std::vector<float> y = x;
      Activate(target, activation, y.data(), y.size());
      if (first.empty()) first = y;
      ASSERT_EQ(0, std::memcmp(first.data(), y.data(), y.size() * 4))
          << static_cast<int>(activation);
    });
  }
}

TEST(Activation, Edges) {
  ForEachTarget([&](const Target& target) {
    for (const Activation activation : kAll) {
      SCOPED_TRACE(static_cast<int>(activation));
      float x[] = {0.0f, -0.0f, kInfinity, kNaN, -kInfinity};
      Activate(target, activation, x, 5);
      const bool is_sigmoid = activation == Activation::kSigmoid;
      const bool is_tanh = activation == Activation::kTanh;
      EXPECT_EQ(x[0], is_sigmoid ? 0.5f : 0.0f);
      EXPECT_EQ(x[1], is_sigmoid ? 0.5f : 0.0f);
      EXPECT_EQ(x[2], is_sigmoid || is_tanh ? 1.0f : kInfinity);
      EXPECT_TRUE(std::isnan(x[3]));
      if (is_tanh) {
        EXPECT_EQ(x[4], -1.0f);
        EXPECT_EQ(Bits(x[1]), Bits(-0.0f));
      }
      if (is_sigmoid) {
        EXPECT_EQ(x[4], 0.0f);
      }
    }
  });
}

TEST(Activation, NeverLeavesItsRangeOrTurnsBack) {
  // Monotone to the last bit would be too much to ask of polynomials; 1 unit.
  ForEachTarget([&](const Target& target) {
    for (const Activation activation :
         {Activation::kTanh, Activation::kSigmoid}) {
      std::vector<float> x;
      for (float value = -30.0f; value < 30.0f; value += 0.0003f) {
        x.push_back(value);
      }
      Activate(target, activation, x.data(), x.size());
      for (size_t i = 1; i < x.size(); ++i) {
        ASSERT_LE(std::abs(x[i]), 1.0f);
        ASSERT_GE(x[i], x[i - 1] - std::abs(x[i - 1]) * 0x1p-22f);
      }
    }
  });
}

TEST(Activation, EverySizeAndAlignment) {
  ForEachTarget([&](const Target& target) {
    TestRandom random(5);
    const std::vector<float> x = random.Uniforms(70, -4, 4);
    std::vector<float> whole = x;
    Activate(target, Activation::kGelu, whole.data(), whole.size());
    for (size_t n = 0; n <= 66; ++n) {
      for (size_t offset = 0; offset < 4; ++offset) {
        std::vector<float> y = x;
        Activate(target, Activation::kGelu, y.data() + offset, n);
        for (size_t i = 0; i < x.size(); ++i) {
          const bool inside = i >= offset && i < offset + n;
          ASSERT_EQ(y[i], inside ? whole[i] : x[i]) << n << " " << offset;
        }
      }
    }
  });
}

TEST(Activation, GatedIsProduct) {
  ForEachTarget([&](const Target& target) {
    TestRandom random(6);
    for (const size_t n : {0, 1, 7, 16, 33, 100}) {
      const std::vector<float> gate = random.Uniforms(n, -4, 4);
      const std::vector<float> up = random.Uniforms(n, -4, 4);
      for (const Activation activation : kAll) {
        std::vector<float> expected = gate;
        Activate(target, activation, expected.data(), n);
        for (size_t i = 0; i < n; ++i) expected[i] *= up[i];
        std::vector<float> out(n);
        ActivateGated(target, activation, gate.data(), up.data(), n,
                      out.data());
        EXPECT_EQ(out, expected);
        std::vector<float> in_gate = gate;
        ActivateGated(target, activation, in_gate.data(), up.data(), n,
                      in_gate.data());
        EXPECT_EQ(in_gate, expected);
        std::vector<float> in_up = up;
        ActivateGated(target, activation, gate.data(), in_up.data(), n,
                      in_up.data());
        EXPECT_EQ(in_up, expected);
      }
    }
  });
}

}  // namespace
}  // namespace lanewise
