// The program `tokenize` against recorded ids, and its bad inputs.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/tokenize_no_model";

RunResult Invoke(std::vector<std::string> arguments,
                 const std::string& in = "") {
  RunOptions options;
  options.in = in;
  return RunProgram(kProgram, arguments, options);
}

std::string Line(const nlohmann::json& ids) {
  return absl::StrJoin(ids.get<std::vector<int>>(), " ") + "\n";
}

TEST(Tokenize, IdsOfAGgufVocabularyAsRecorded) {
  int cases = 0;
  for (absl::string_view text :
       absl::StrSplit(ReadFile("tests/data/gguf/llama_q4_0/tokenize.jsonl"),
                      '\n', absl::SkipEmpty())) {
    const nlohmann::json golden = Json(std::string(text));
    const std::string input = golden["text"];
    // Arguments cannot hold NUL; each case is a process, so not all of them.
    if (input.find('\0') != std::string::npos || cases == 25) continue;
    ++cases;
    const RunResult result =
        Invoke({"--model", kLlamaGguf, "--special", "--", input});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, Line(golden["ids"])) << text;
    const RunResult back =
        Invoke({"--model", kLlamaGguf, "--decode"}, Line(golden["ids"]));
    EXPECT_EQ(back.out, golden["decoded"].get<std::string>() + "\n") << text;
  }
  EXPECT_EQ(cases, 25);
}

TEST(Tokenize, IdsOfAFolderAsRecorded) {
  const nlohmann::json golden =
      Json(ReadFile(std::string(kLlama) + "/case.json"));
  for (const nlohmann::json& run : golden["text_runs"]) {
    const std::string text = run["text"];
    EXPECT_EQ(Invoke({"--model", kLlama, text}).out, Line(run["input_ids"]));
    EXPECT_EQ(Invoke({"--model", kLlama}, text + "\n").out,
              Line(run["input_ids"]));
    EXPECT_EQ(
        Invoke({"--model", std::string(kLlama) + "/tokenizer.json", text}).out,
        Line(run["input_ids"]));
    const RunResult bare =
        Invoke({"--model", kLlama, "--no_special_tokens", text});
    EXPECT_EQ("1 " + bare.out, Line(run["input_ids"]));
  }
}

TEST(Tokenize, SpellsTokensAndPrintsJson) {
  EXPECT_EQ(Invoke({"--model", kLlamaGguf, "--tokens", "Hello world"}).out,
            "40\tH\n69\te\n292\tll\n79\to\n271\tĠw\n269\tor\n76\tl\n68\td\n");
  const nlohmann::json json =
      Json(Invoke({"--model", kLlamaGguf, "--json", "Hello"}).out);
  EXPECT_EQ(json["ids"], Json("[40, 69, 292, 79]"));
  EXPECT_EQ(json["tokens"], Json(R"(["H", "e", "ll", "o"])"));
  EXPECT_EQ(json["text"], "Hello");
  EXPECT_EQ(
      Invoke({"--model", kLlamaGguf, "--decode", "[40, 69,292]", "79"}).out,
      "Hello\n");
}

TEST(Tokenize, T28ControlTokensOnlyWhenAsked) {
  const RunResult special =
      Invoke({"--model", kLlamaGguf, "--special", "<|endoftext|>"});
  EXPECT_EQ(special.out, "0\n");
  const RunResult plain = Invoke({"--model", kLlamaGguf, "<|endoftext|>"});
  EXPECT_TRUE(absl::StrContains(plain.out, " "));
}

TEST(Tokenize, T20AMegabyteOfOneLineIsFast) {
  const RunResult result =
      Invoke({"--model", kLlamaGguf}, std::string(1 << 20, 'Z'));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(result.out.size(), size_t{1} << 19);
}

TEST(Tokenize, ErrorsAreOneLine) {
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string word;
  } cases[] = {
      {{"--model", "/none", "a"}, 1, "/none: No such file"},
      {{"a"}, 1, "without a default model"},
      {{"--model", kLlama, "a", "b"}, 2, "'b': put the whole text in quotes"},
      {{"--model", kLlama, "--file=x", "a"}, 2, "--file"},
      {{"--model", kLlama, "--decode", "--tokens", "1"}, 2, "--tokens"},
      {{"--model", kLlama, "--decode", "1", "x2"}, 1, "found 'x2'"},
      {{"--model", kLlama, "--decode", "560"}, 1, "expected ids from 0 to "},
      {{"--model", kLlama, "--decode", "-1"}, 2, "unknown flag -1"},
      {{"--model", kLlama, "--ids"}, 2, "unknown flag --ids"},
      {{"--model", kLlama, "--file", kLlama}, 1, "found a directory"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(absl::StrJoin(test.arguments, " "));
    ExpectErrorLine(Invoke(test.arguments), "tokenize", test.exit_code,
                    {test.word});
  }
}

TEST(Tokenize, HelpTeachesByExample) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word :
       {"tokenize \"Hello, world\"", "--model", "--file", "--decode",
        "--tokens", "--special", "--no_special_tokens", "--json"}) {
    EXPECT_TRUE(absl::StrContains(result.out, word)) << word;
  }
}

}  // namespace
}  // namespace lanewise
