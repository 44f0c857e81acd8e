// RoPE frequencies by length, ALiBi slopes by factor. Their values:
// //tests/conformance/kernels.
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "model/families/common.h"
#include "model/rope_table.h"

namespace lanewise {
namespace {

TEST(Positions, AlibiSlopesTakeAFactor) {
  for (const size_t heads : {1, 5, 12, 71}) {
    const std::vector<float> whole = AlibiSlopes(heads, 1.0);
    const std::vector<float> quarter = AlibiSlopes(heads, 0.25);
    ASSERT_EQ(quarter.size(), heads);
    for (size_t i = 0; i < heads; ++i) {
      EXPECT_EQ(quarter[i], whole[i] * 0.25f);
    }
  }
}

TEST(Positions, OnlyTwoScalingsDependOnTheLength) {
  RopeSpec spec;
  spec.rotary_dim = 8;
  spec.original_positions = 16;
  spec.factor = 2.0;
  spec.short_factors = {1, 1, 1, 1};
  spec.long_factors = {1, 2, 3, 4};
  using Scaling = RopeSpec::Scaling;
  for (const Scaling scaling :
       {Scaling::kNone, Scaling::kLinear, Scaling::kDynamic, Scaling::kLlama3,
        Scaling::kYarn, Scaling::kLongrope}) {
    spec.scaling = scaling;
    const RopeTable table(spec);
    std::vector<float> scratch(table.half());
    const auto at = [&](size_t length) {
      const auto span = table.Frequencies(length, scratch.data());
      return std::vector<float>(span.begin(), span.end());
    };
    EXPECT_EQ(at(1), at(16));
    EXPECT_EQ(at(16) != at(17),
              scaling == Scaling::kDynamic || scaling == Scaling::kLongrope);
    EXPECT_EQ(at(17) != at(99), scaling == Scaling::kDynamic);
  }
}

}  // namespace
}  // namespace lanewise
