#include "simd/rope.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr RopePairing kPairings[] = {RopePairing::kHalves,
                                     RopePairing::kInterleaved};

// Indices of pair i.
std::pair<size_t, size_t> Pair(RopePairing pairing, size_t i, size_t half) {
  return pairing == RopePairing::kHalves ? std::make_pair(i, i + half)
                                         : std::make_pair(2 * i, 2 * i + 1);
}

std::vector<float> Reference(std::vector<float> x, size_t heads, size_t stride,
                             size_t rotary_dim, RopePairing pairing,
                             const std::vector<float>& cos,
                             const std::vector<float>& sin) {
  const size_t half = rotary_dim / 2;
  for (size_t h = 0; h < heads; ++h) {
    for (size_t i = 0; i < half; ++i) {
      const auto [first, second] = Pair(pairing, i, half);
      float& a = x[h * stride + first];
      float& b = x[h * stride + second];
      const float rotated_a = std::fma(-b, sin[i], a * cos[i]);
      b = std::fma(a, sin[i], b * cos[i]);
      a = rotated_a;
    }
  }
  return x;
}

TEST(Rope, OddSizesAndPartialRotation) {
  for (const size_t rotary_dim : {0, 2, 6, 10, 16, 20, 34, 64, 80, 128, 258}) {
    for (const RopePairing pairing : kPairings) {
      const size_t heads = 3, stride = rotary_dim + 5;  // 5 are not rotated
      TestRandom random(rotary_dim);
      const std::vector<float> x = random.Uniforms(1 + heads * stride, -3, 3);
      const std::vector<float> cos = random.Uniforms(rotary_dim / 2);
      const std::vector<float> sin = random.Uniforms(rotary_dim / 2);
      // From x + 1: misaligned.
      std::vector<float> expected =
          Reference({x.begin() + 1, x.end()}, heads, stride, rotary_dim,
                    pairing, cos, sin);
      expected.insert(expected.begin(), x[0]);
      ForEachTarget([&](const Target& target) {
        std::vector<float> found = x;
        ApplyRope(target, found.data() + 1, heads, stride, rotary_dim, pairing,
                  cos.data(), sin.data());
        if (target.has_fma()) {
          ASSERT_EQ(std::memcmp(found.data(), expected.data(),
                                found.size() * sizeof(float)),
                    0);
        }
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_NEAR(found[i], expected[i], 1e-6) << i;
        }
      });
    }
  }
}

// Scores after rotation depend on the distance of the positions only.
TEST(Rope, DotProductsDependOnDistance) {
  constexpr size_t kDim = 64;
  const auto rotate = [](const Target& target, std::vector<float> x,
                         RopePairing pairing, double position) {
    std::vector<float> cos, sin;
    for (size_t i = 0; i < kDim / 2; ++i) {
      const double angle = position * std::pow(10000.0, -2.0 * i / kDim);
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
    ApplyRope(target, x.data(), 1, kDim, kDim, pairing, cos.data(), sin.data());
    return x;
  };
  const auto dot = [](const std::vector<float>& a,
                      const std::vector<float>& b) {
    double sum = 0.0;
    for (size_t i = 0; i < kDim; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  };
  TestRandom random(1);
  const std::vector<float> q = random.Uniforms(kDim), k = random.Uniforms(kDim);
  ForEachTarget([&](const Target& target) {
    for (const RopePairing pairing : kPairings) {
      const double near =
          dot(rotate(target, q, pairing, 12), rotate(target, k, pairing, 5));
      const double far = dot(rotate(target, q, pairing, 4007),
                             rotate(target, k, pairing, 4000));
      EXPECT_NEAR(near, far, 1e-4);
      const double other =
          dot(rotate(target, q, pairing, 13), rotate(target, k, pairing, 5));
      EXPECT_GT(std::fabs(near - other), 1e-2);
      EXPECT_EQ(rotate(target, q, pairing, 0), q);
    }
  });
}

// The pairings differ by a permutation of the elements.
TEST(Rope, PairingsAgreeUpToOrder) {
  constexpr size_t kHalf = 21;
  TestRandom random(2);
  const std::vector<float> halves = random.Uniforms(2 * kHalf);
  const std::vector<float> cos = random.Uniforms(kHalf);
  const std::vector<float> sin = random.Uniforms(kHalf);
  std::vector<float> interleaved(2 * kHalf);
  for (size_t i = 0; i < kHalf; ++i) {
    interleaved[2 * i] = halves[i];
    interleaved[2 * i + 1] = halves[i + kHalf];
  }
  ForEachTarget([&](const Target& target) {
    std::vector<float> a = halves, b = interleaved;
    ApplyRope(target, a.data(), 1, 2 * kHalf, 2 * kHalf, RopePairing::kHalves,
              cos.data(), sin.data());
    ApplyRope(target, b.data(), 1, 2 * kHalf, 2 * kHalf,
              RopePairing::kInterleaved, cos.data(), sin.data());
    for (size_t i = 0; i < kHalf; ++i) {
      ASSERT_EQ(a[i], b[2 * i]);
      ASSERT_EQ(a[i + kHalf], b[2 * i + 1]);
    }
  });
}

}  // namespace
}  // namespace lanewise
