// RoPE frequencies and ALiBi slopes against the reference's.
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/families/common.h"
#include "model/families/rope_config.h"
#include "model/rope_table.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;

json Cases() {
  std::ifstream in("tests/model/families/positions.json");
  std::stringstream text;
  text << in.rdbuf();
  return json::parse(text.str());
}

TEST(Positions, RopeFrequenciesEqualTheReference) {
  size_t compared = 0;
  for (const json& c : Cases()) {
    if (!c.contains("inv_freq")) continue;
    SCOPED_TRACE(c["name"].get<std::string>());
    const json& params = c["params"];
    const size_t positions = params.value("max_position_embeddings", 64);
    const json config = {{"rope_parameters", params}};
    const auto rope =
        ReadRope(config, "config.json", params["head_dim"], positions);
    ASSERT_TRUE(rope.ok()) << rope.status();
    const RopeTable table(*rope);
    std::vector<float> scratch(table.half());
    const size_t length =
        params["seq_len"].is_null() ? 1 : params["seq_len"].get<size_t>();
    const auto found = table.Frequencies(length, scratch.data());
    ASSERT_EQ(found.size(), c["inv_freq"].size());
    for (size_t i = 0; i < found.size(); ++i) {
      const float expected = c["inv_freq"][i];
      // The reference blends frequencies in float, so a few units in the last
      // place.
      EXPECT_NEAR(found[i], expected, 1e-6f * expected) << i;
    }
    EXPECT_NEAR(rope->attention_factor, c["attention_factor"][0].get<double>(),
                1e-6);
    ++compared;
  }
  EXPECT_GE(compared, 10u);
}

TEST(Positions, AlibiSlopesEqualTheReference) {
  size_t compared = 0;
  for (const json& c : Cases()) {
    if (!c.contains("slopes")) continue;
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::vector<float> expected = c["slopes"];
    const std::vector<float> found = AlibiSlopes(c["params"]["heads"], 1.0);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 2e-6f * expected[i]) << i;
      EXPECT_EQ(AlibiSlopes(found.size(), 0.25)[i], found[i] * 0.25f);
    }
    ++compared;
  }
  EXPECT_GE(compared, 10u);
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
