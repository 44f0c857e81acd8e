// Beam search over decoder-only models against the reference's sequences and
// scores, with f32 activations and cache, on every target here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "golden_root.h"
#include "gtest/gtest.h"
#include "tests/conformance/beam_runner.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/run_params.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

bool IsCase(const fs::path& folder) {
  const auto opened = CaseFolder::Open(folder.string());
  if (!opened.ok() ||
      opened->json().value("family", "decoder") == "encoder-decoder") {
    return false;
  }
  return std::any_of(opened->runs().begin(), opened->runs().end(), HasBeams);
}

// The cases in the tree, and where LANEWISE_GOLDEN names the whole suite all of
// its decoders.
std::vector<std::string> Cases() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(
           golden.empty() ? "tests/data/models" : golden + "/models/decoder",
           error)) {
    if (IsCase(entry.path())) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
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
                         [](const testing::TestParamInfo<std::string>& param) {
                           return fs::path(param.param).filename().string();
                         });

// A suite without cases tests nothing.
TEST(BeamCases, ThereAreSome) { EXPECT_GE(Cases().size(), 7u); }

}  // namespace
}  // namespace lanewise
