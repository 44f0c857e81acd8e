// The program `classify`: its two formats say the same, and its bad inputs.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/classify";
constexpr char kBert[] = "tests/data/models/bert_mlm";

RunResult Invoke(std::vector<std::string> arguments,
                 const std::string& in = "") {
  arguments.insert(arguments.begin(), {"--model", kBert});
  RunOptions options;
  options.in = in;
  return RunProgram(kProgram, arguments, options);
}

std::vector<std::vector<std::string>> Cells(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(line, '\t'));
  }
  return rows;
}

double Score(const std::string& cell) {
  double value = -1;
  EXPECT_TRUE(absl::SimpleAtod(cell, &value)) << cell;
  return value;
}

TEST(Classify, MissingWordsInBothFormats) {
  const RunResult text = Invoke({"--top_k=3", "The [MASK] fox"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.err, "");
  const auto rows = Cells(text.out);
  ASSERT_EQ(rows.size(), 3u);
  const nlohmann::json json =
      Json(Invoke({"--top_k=3", "--json", "--mask=___", "The ___ fox"}).out);
  EXPECT_EQ(json["text"], "The ___ fox");
  EXPECT_EQ(json["masks"][0]["begin"], 4);
  EXPECT_EQ(json["masks"][0]["end"], 7);
  EXPECT_EQ(json["masks"][0]["text"], "___");
  const auto& choices = json["masks"][0]["choices"];
  ASSERT_EQ(choices.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(rows[i].size(), 2u);
    EXPECT_NEAR(Score(rows[i][0]), choices[i]["score"].get<double>(), 1e-6);
    EXPECT_EQ(rows[i][1], choices[i]["token"].get<std::string>());
  }
}

TEST(Classify, LinesAreTextsWithTheirNumbers) {
  const RunResult lines =
      Invoke({"--top_k=2"}, "a [MASK]\n[MASK] fox [MASK]\n");
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  const auto rows = Cells(lines.out);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].back(), "0");
  EXPECT_EQ(rows[5].back(), "1");
  EXPECT_EQ(rows[2][1], "0-6");
  EXPECT_EQ(rows[5][1], "11-17");
  const auto alone = Cells(Invoke({"--top_k=2", "[MASK] fox [MASK]"}).out);
  ASSERT_EQ(alone.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(absl::StrCat(absl::StrJoin(alone[i], "\t"), "\t1"),
              absl::StrJoin(rows[i + 2], "\t"));
  }
}

TEST(Classify, A17CutTextsAreTold) {
  std::string text = "[MASK]";
  for (int i = 0; i < 100; ++i) text += " fox";
  const RunResult cut = Invoke({text});
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(cut.err, "1 of 1 texts had more than 80"))
      << cut.err;
  EXPECT_EQ(Invoke({"--no_truncate", text}).exit_code, 1);
}

TEST(Classify, ErrorsAreOneLine) {
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string word;
  } cases[] = {
      {{"a"}, 1, "expected [MASK] in the text"},
      {{"--pair=b", "[MASK]"}, 1, "found a pair"},
      {{"--pair=b", "--question=c", "a"}, 2, "--question"},
      {{"--file=x", "a"}, 2, "both texts and --file"},
      {{"--aggregation=all", "a"}, 2, "simple"},
      {{"--scores=all", "a"}, 2, "sigmoid"},
      {{"--target=Z80", "a"}, 2, "--target"},
      {{"--model=tests/data/models/llama", "a"}, 1, "Generate fits it"},
      {{}, 1, "the input is empty"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(absl::StrJoin(test.arguments, " "));
    ExpectErrorLine(Invoke(test.arguments), "classify", test.exit_code,
                    {test.word});
  }
}

TEST(Classify, HelpTeachesByExample) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word :
       {"classify --model sentiment", "--pair", "--question", "--mask",
        "--tokens", "--aggregation", "--top_k", "--json"}) {
    EXPECT_TRUE(absl::StrContains(result.out, word)) << word;
  }
}

}  // namespace
}  // namespace lanewise
