// Rotations by position against values computed in double
// (tests/data/kernels/position.*): the frequencies of RopeTable and the kernel
// ApplyRope together, as the executor uses them.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/rope_table.h"
#include "simd/rope.h"
#include "tests/simd/golden_topic.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

// The golden README: relative to the largest output.
constexpr double kTolerance = 1e-5;
constexpr size_t kHeads = 3;  // x: [batch, heads, positions, head_dim]

RopeSpec SpecOf(const nlohmann::json& golden) {
  RopeSpec spec;
  spec.theta = golden["params"]["theta"];
  spec.rotary_dim = golden["params"]["rotary_dim"];
  const std::string name = golden["name"];
  spec.pairing = name.rfind("rope_interleaved_", 0) == 0
                     ? RopePairing::kInterleaved
                     : RopePairing::kHalves;
  return spec;
}

std::vector<float> Rotated(const Target& target, const RopeSpec& spec,
                           const GoldenArray& x, const GoldenArray& positions) {
  const RopeTable table(spec);
  std::vector<float> scratch(table.half()), cos(table.half()),
      sin(table.half());
  std::vector<float> out = x.values;
  for (size_t row = 0; row < x.rows(); ++row) {
    const size_t batch = row / (kHeads * positions.width);
    const float position = positions.row(batch)[row % positions.width];
    table.Fill(table.Frequencies(1, scratch.data()),
               static_cast<size_t>(position), cos.data(), sin.data());
    ApplyRope(target, out.data() + row * x.width, 1, x.width, spec.rotary_dim,
              spec.pairing, cos.data(), sin.data());
  }
  return out;
}

TEST(RopeGolden, HalvesAndInterleaved) {
  const GoldenTopic topic("position");
  ForEachTarget([&](const Target& target) {
    size_t compared = 0;
    for (const auto& golden : topic.cases()) {
      const std::string name = golden["name"];
      if (name.rfind("rope_half_", 0) != 0 &&
          name.rfind("rope_interleaved_", 0) != 0) {
        continue;  // frequencies and slopes: positions_test
      }
      SCOPED_TRACE(name);
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* positions = topic.Find(golden, "inputs", "positions");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      ASSERT_TRUE(x != nullptr && positions != nullptr && y != nullptr);
      ASSERT_EQ(x->rows(), positions->values.size() * kHeads);
      const std::vector<float> found =
          Rotated(target, SpecOf(golden), *x, *positions);
      double largest = 0, error = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        largest = std::max(largest, std::fabs(double{y->values[i]}));
        error = std::max(error, std::fabs(double{found[i]} - y->values[i]));
      }
      EXPECT_LE(error, kTolerance * largest);
      ++compared;
    }
    EXPECT_EQ(compared, 8u);
  });
}

}  // namespace
}  // namespace lanewise
