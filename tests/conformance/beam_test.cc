// Beam search over decoder-only models against the reference's sequences and
// scores, with f32 activations and cache, on every target here.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/beam_runner.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/model_cases.h"
#include "tests/conformance/run_params.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

// Those with runs of beam search.
std::vector<std::string> Cases() {
  std::vector<std::string> cases = ModelCases("decoder");
  const auto has_no_beams = [](const std::string& path) {
    const auto folder = CaseFolder::Open(path);
    return !folder.ok() ||
           std::none_of(folder->runs().begin(), folder->runs().end(), HasBeams);
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), has_no_beams),
              cases.end());
  return cases;
}

class BeamTest : public testing::TestWithParam<std::string> {};

void ExpectReference(const std::string& folder, const Context& context,
                     size_t max_rows) {
  const auto report = RunBeamCase(folder, context, max_rows);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->comparisons.empty());
  EXPECT_TRUE(report->passed()) << report->Failures();
  double error = 0;
  for (const Comparison& c : report->comparisons) {
    error = std::max(error, c.error);
  }
  std::printf("%s on %s: %zu comparisons, largest error of a score %.1e\n",
              folder.c_str(), std::string(context.target().name()).c_str(),
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

INSTANTIATE_TEST_SUITE_P(Models, BeamTest, testing::ValuesIn(Cases()),
                         CaseTestName);

// A suite without cases tests nothing.
TEST(BeamCases, ThereAreSome) { EXPECT_GE(Cases().size(), 7u); }

}  // namespace
}  // namespace lanewise
