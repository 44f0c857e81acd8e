// The program `embed` as it is shipped, with its default model: the cosines of
// the reference.
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/conformance/case_folder.h"
#include "tests/tools/subprocess.h"

namespace lanewise {
namespace {

TEST(DefaultEmbeddingModel, T14CosinesAreTheReferences) {
  const auto folder = CaseFolder::Open("tests/data/real/all_minilm_l6_v2");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto expected =
      folder->Array<float>(folder->runs()[0]["outputs"], "cosine");
  ASSERT_TRUE(expected.ok()) << expected.status();
  // Two paraphrases, and one that has nothing to do with them.
  const std::vector<size_t> chosen = {2, 3, 4};
  std::vector<std::string> arguments = {"--similarity"};
  for (const size_t index : chosen) {
    arguments.push_back(folder->json()["sentences"][index]);
  }
  const RunResult result = RunProgram("tools/embed", arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines =
      absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], '\t');
    ASSERT_EQ(cells.size(), chosen.size() + 1);
    EXPECT_EQ(cells.back(), arguments[i + 1]);
    for (size_t j = 0; j < chosen.size(); ++j) {
      double found = 0;
      ASSERT_TRUE(absl::SimpleAtod(cells[j], &found)) << cells[j];
      EXPECT_NEAR(found, expected->Row(chosen[i])[chosen[j]], 1e-4);
    }
  }
}

}  // namespace
}  // namespace lanewise
