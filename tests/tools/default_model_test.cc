// The programs with the default model beside them, as `bazel run` and as bare
// files.
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

TEST(DefaultModel, AnswersWithoutAnyFlagOfTheModel) {
  const std::vector<std::string> arguments = {
      "--prompt", "Write one sentence about the sea.", "--max_tokens=12",
      "--json"};
  const RunResult result = RunProgram("tools/generate", arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const nlohmann::json json = Json(result.out);
  EXPECT_EQ(json.value("ids", nlohmann::json()).size(), 12u);
  EXPECT_FALSE(json.value("text", "").empty());
  EXPECT_TRUE(absl::EndsWith(json.value("model", ""),
                             "SmolLM2-135M-Instruct.Q4_1.gguf"));
}

TEST(DefaultModel, FindsTheRightAnswerMoreProbable) {
  RunOptions options;
  options.in = " Paris.\n Lyon.\n Berlin.\n";
  const RunResult result = RunProgram(
      "tools/score",
      {"--lines", "--json", "--prompt", "The capital of France is"}, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  ASSERT_EQ(lines.size(), 4u);
  const double best = Json(lines[0]).value("perplexity", 0.0);
  EXPECT_GT(best, 1);
  EXPECT_GT(Json(lines[1]).value("perplexity", 0.0), 2 * best);
  EXPECT_GT(Json(lines[2]).value("perplexity", 0.0), 2 * best);
}

// A fresh process that knows nothing of Bazel: the model is found beside it.
TEST(DefaultModel, IsFoundBesideABareProgram) {
  const std::string folder = TestFolder("bare");
  std::error_code error;
  for (const char* program : {"generate", "tokenize"}) {
    std::filesystem::create_symlink(
        std::filesystem::absolute(absl::StrCat("tools/", program)),
        absl::StrCat(folder, "/", program), error);
    ASSERT_FALSE(error) << error.message();
  }
  // The runfiles of this test hold those of the program.
  const char* runfiles = getenv("TEST_SRCDIR");
  ASSERT_NE(runfiles, nullptr);
  std::filesystem::create_directory_symlink(
      runfiles, folder + "/tokenize.runfiles", error);
  ASSERT_FALSE(error) << error.message();
  RunOptions options;
  for (const char* name :
       {"RUNFILES_DIR", "RUNFILES_MANIFEST_FILE", "TEST_SRCDIR",
        "JAVA_RUNFILES", "PYTHON_RUNFILES", "BUILD_WORKING_DIRECTORY"}) {
    options.environment.emplace_back(name, "");
  }
  const RunResult result =
      RunProgram(folder + "/tokenize", {"Hello world"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "19556 905\n");
}

TEST(DefaultModel, A17AMegabyteIsRefusedWithBothNumbers) {
  RunOptions options;
  for (int i = 0; options.in.size() < 1'000'000; ++i) {
    absl::StrAppend(&options.in, "word", i, " ");
  }
  const RunResult result = RunProgram("tools/generate", {}, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(absl::StrContains(result.err,
                                " tokens do not fit into the context of 8192"))
      << result.err;
}

}  // namespace
}  // namespace lanewise
