#include "tools/quantize_types.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

TEST(QuantizeTypes, Patterns) {
  const struct {
    const char *pattern, *name;
    bool matches;
  } kCases[] = {
      {"", "", true},           {"", "a", false},
      {"*", "", true},          {"*", "abc", true},
      {"a", "a", true},         {"a", "ab", false},
      {"a*", "abc", true},      {"*c", "abc", true},
      {"*b", "abc", false},     {"a*c", "abbc", true},
      {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false},
      {"*ab", "aab", true},     {"**a**", "a", true},
      {"*.x.*", "b.x.y", true}, {"*aaa*b", "aaaaaaaaaaaa", false},
  };
  for (const auto& row : kCases) {
    EXPECT_EQ(MatchesPattern(row.pattern, row.name), row.matches)
        << row.pattern << " " << row.name;
  }
}

TEST(QuantizeTypes, Choices) {
  TypeOptions options;
  options.type = DType::kQ4_0;
  const auto choose = [&](const char* name, std::vector<uint64_t> shape,
                          DType from = DType::kF32) {
    return ChooseType({name, name, from, std::move(shape)}, options);
  };
  EXPECT_EQ(choose("output.weight", {8, 512}).type, DType::kQ6_K);
  EXPECT_EQ(choose("output.weight", {8, 96}).type, DType::kQ8_0);
  EXPECT_EQ(choose("output.weight", {8, 100}).type, DType::kF16);
  EXPECT_EQ(choose("output.weight", {8, 100}).wanted, DType::kQ8_0);
  EXPECT_EQ(choose("blk.0.attn_q.weight", {8, 96}).type, DType::kQ4_0);
  EXPECT_FALSE(choose("blk.0.attn_q.weight", {8, 96}).wanted.has_value());
  EXPECT_EQ(choose("blk.0.attn_q.weight", {8, 100}).type, DType::kF16);
  EXPECT_EQ(choose("blk.0.attn_q.bias", {96}, DType::kF16).type, DType::kF32);
  EXPECT_EQ(choose("position_embd.weight", {8, 96}).type, DType::kF32);
  EXPECT_EQ(choose("blk.0.ffn_gate_inp.weight", {8, 96}).type, DType::kF32);
  EXPECT_EQ(choose("ids", {8, 96}, DType::kI32).type, DType::kI32);
  EXPECT_EQ(choose("scalar", {}).type, DType::kF32);
}

}  // namespace
}  // namespace lanewise
