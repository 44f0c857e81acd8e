#include "simd/norm.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

// The order of docs/design.md, section 2, in scalar code.
template <class Term>
float Sum16(size_t n, Term term) {
  float lanes[16] = {};
  for (size_t i = 0; i < n; ++i) lanes[i % 16] = term(lanes[i % 16], i);
  for (const size_t step : {8, 4, 2, 1}) {
    for (size_t i = 0; i < step; ++i) lanes[i] = lanes[i] + lanes[i + step];
  }
  return lanes[0];
}

std::vector<float> ReferenceRmsNorm(const std::vector<float>& x,
                                    const float* weight, float eps) {
  const float squares = Sum16(x.size(), [&](float lane, size_t i) {
    return std::fma(x[i], x[i], lane);
  });
  const float scale =
      1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps);
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] * scale;
    if (weight != nullptr) out[i] *= weight[i];
  }
  return out;
}

std::vector<float> ReferenceLayerNorm(const std::vector<float>& x,
                                      const float* weight, const float* bias,
                                      float eps) {
  const float width = static_cast<float>(x.size());
  const float mean =
      Sum16(x.size(), [&](float lane, size_t i) { return lane + x[i]; }) /
      width;
  const float squares = Sum16(x.size(), [&](float lane, size_t i) {
    return std::fma(x[i] - mean, x[i] - mean, lane);
  });
  const float scale = 1.0f / std::sqrt(squares / width + eps);
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float t = (x[i] - mean) * scale;
    if (weight != nullptr) {
      out[i] =
          bias != nullptr ? std::fma(t, weight[i], bias[i]) : t * weight[i];
    } else {
      out[i] = bias != nullptr ? t + bias[i] : t;
    }
  }
  return out;
}

// Bits on targets with fused multiply-add, else a few roundings.
void Expect(const Target& target, const std::vector<float>& expected,
            const float* found) {
  if (target.has_fma()) {
    ASSERT_EQ(0, std::memcmp(expected.data(), found,
                             expected.size() * sizeof(float)));
    return;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], found[i], 1e-5f * (1 + std::abs(expected[i])))
        << i;
  }
}

constexpr size_t kWidths[] = {1,  2,  3,  7,  8,   15,  16,   17,
                              31, 33, 63, 65, 100, 576, 1000, 4097};

TEST(Norm, RmsNormEqualsReference) {
  ForEachTarget([](const Target& target) {
    TestRandom random(1);
    for (const size_t width : kWidths) {
      const std::vector<float> x = random.Uniforms(width, -3, 3);
      // One float off alignment, with a guard at the end.
      std::vector<float> weight = random.Uniforms(width + 1);
      std::vector<float> out(width + 2, 77.0f);
      for (const float* w : {weight.data() + 1, static_cast<float*>(nullptr)}) {
        RmsNorm(target, x.data(), w, 1e-5f, width, out.data() + 1);
        Expect(target, ReferenceRmsNorm(x, w, 1e-5f), out.data() + 1);
        EXPECT_EQ(out.front(), 77.0f);
        EXPECT_EQ(out.back(), 77.0f);
      }
    }
  });
}

TEST(Norm, LayerNormEqualsReference) {
  ForEachTarget([](const Target& target) {
    TestRandom random(2);
    for (const size_t width : kWidths) {
      const std::vector<float> x = random.Uniforms(width, -3, 5);
      std::vector<float> weight = random.Uniforms(width + 1);
      std::vector<float> bias = random.Uniforms(width + 3);
      std::vector<float> out(width + 2, 77.0f);
      for (const float* w : {weight.data() + 1, static_cast<float*>(nullptr)}) {
        for (const float* b : {bias.data() + 3, static_cast<float*>(nullptr)}) {
          LayerNorm(target, x.data(), w, b, 1e-5f, width, out.data() + 1);
          Expect(target, ReferenceLayerNorm(x, w, b, 1e-5f), out.data() + 1);
          EXPECT_EQ(out.front(), 77.0f);
          EXPECT_EQ(out.back(), 77.0f);
        }
      }
    }
  });
}

TEST(Norm, InPlace) {
  ForEachTarget([](const Target& target) {
    TestRandom random(3);
    const std::vector<float> x = random.Uniforms(77);
    const std::vector<float> weight = random.Uniforms(77);
    const std::vector<float> bias = random.Uniforms(77);
    std::vector<float> out(77);
    std::vector<float> in_place = x;
    RmsNorm(target, x.data(), weight.data(), 1e-6f, 77, out.data());
    RmsNorm(target, in_place.data(), weight.data(), 1e-6f, 77, in_place.data());
    EXPECT_EQ(out, in_place);
    in_place = x;
    LayerNorm(target, x.data(), weight.data(), bias.data(), 1e-6f, 77,
              out.data());
    LayerNorm(target, in_place.data(), weight.data(), bias.data(), 1e-6f, 77,
              in_place.data());
    EXPECT_EQ(out, in_place);
  });
}

TEST(Norm, N4LargeValuesStayFinite) {
  // Each lane adds 256 squares; half of the sum's relative error remains.
  constexpr float kTolerance = 256 * 0x1p-25f;
  ForEachTarget([](const Target& target) {
    for (const float value : {1e5f, 66246.0f, 1e15f}) {
      std::vector<float> x(4096, value);
      for (size_t i = 0; i < x.size(); i += 2) x[i] = -value;
      std::vector<float> out(x.size());
      RmsNorm(target, x.data(), nullptr, 1e-6f, x.size(), out.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(out[i], i % 2 == 0 ? -1.0f : 1.0f, kTolerance);
      }
      LayerNorm(target, x.data(), nullptr, nullptr, 1e-6f, x.size(),
                out.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(out[i], i % 2 == 0 ? -1.0f : 1.0f, kTolerance);
      }
    }
  });
}

TEST(Norm, ZeroAndConstantRows) {
  ForEachTarget([](const Target& target) {
    for (const size_t width : {1, 5, 16, 50}) {
      std::vector<float> out(width, 9.0f);
      const std::vector<float> zeros(width, 0.0f);
      RmsNorm(target, zeros.data(), nullptr, 1e-6f, width, out.data());
      EXPECT_EQ(out, zeros);
      LayerNorm(target, zeros.data(), nullptr, nullptr, 1e-6f, width,
                out.data());
      EXPECT_EQ(out, zeros);
      const std::vector<float> constant(width, 3.0f);
      LayerNorm(target, constant.data(), nullptr, nullptr, 1e-6f, width,
                out.data());
      EXPECT_EQ(out, zeros);
    }
  });
}

// A one-pass variance loses everything here.
TEST(Norm, LayerNormOfRowFarFromZero) {
  ForEachTarget([](const Target& target) {
    std::vector<float> x(64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 9999.f : 10001.f;
    std::vector<float> out(x.size());
    LayerNorm(target, x.data(), nullptr, nullptr, 0.0f, x.size(), out.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(out[i], i % 2 == 0 ? -1.0f : 1.0f, 1e-6f);
    }
  });
}

TEST(Norm, NanStaysVisible) {
  ForEachTarget([](const Target& target) {
    std::vector<float> x(37, 1.0f);
    x[36] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> out(x.size());
    RmsNorm(target, x.data(), nullptr, 1e-6f, x.size(), out.data());
    for (const float value : out) EXPECT_TRUE(std::isnan(value));
    LayerNorm(target, x.data(), nullptr, nullptr, 1e-6f, x.size(), out.data());
    for (const float value : out) EXPECT_TRUE(std::isnan(value));
  });
}

}  // namespace
}  // namespace lanewise
