// Beam search over decoder-only models against the reference's sequences and
// scores, with f32 activations and cache, on every target here.
#include <algorithm>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/beam_runner.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

class BeamTest : public testing::TestWithParam<const char*> {};

void ExpectReference(const std::string& name, const Context& context,
                     size_t max_rows) {
  const auto report =
      RunBeamCase("tests/data/models/" + name, context, max_rows);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->comparisons.empty());
  EXPECT_TRUE(report->passed()) << report->Failures();
  double error = 0;
  for (const Comparison& c : report->comparisons) {
    error = std::max(error, c.error);
  }
  std::printf("%s on %s: %zu comparisons, largest error of a score %.1e\n",
              name.c_str(), std::string(context.target().name()).c_str(),
              report->comparisons.size(), error);
}

TEST_P(BeamTest, S8EqualsReference) {
  ForEachTarget([](const Target& target) {
    ExpectReference(GetParam(), *MakeContext(target, /*threads=*/2), 512);
  });
}

// More beams than one forward pass takes, and prompts in many chunks.
TEST_P(BeamTest, S23EqualsReferenceInSmallChunks) {
  ExpectReference(GetParam(), *MakeContext(Target::Best()), 3);
}

INSTANTIATE_TEST_SUITE_P(Models, BeamTest,
                         testing::Values("llama", "llama_bias_tied",
                                         "llama_f16", "llama_sharded_bf16",
                                         "gpt2", "gpt2_hubstyle",
                                         "gpt2_scaled"),
                         [](const testing::TestParamInfo<const char*>& param) {
                           return std::string(param.param);
                         });

}  // namespace
}  // namespace lanewise
