// The program `score` on small models: its numbers, its forms of output, bad
// input, signals.
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/score_no_model";
constexpr char kText[] = "The quick brown fox";
using Arguments = std::vector<std::string>;

RunResult Invoke(Arguments more, const RunOptions& options = {}) {
  Arguments arguments = {"--model", kLlama};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(kProgram, arguments, options);
}

RunOptions Pipe(const std::string& text) {
  RunOptions options;
  options.in = text;
  return options;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

ScoreResult Expected(const std::string& text, const std::string& prompt = "",
                     size_t stride = 0, size_t context = 0) {
  EngineOptions options;
  options.context_length = context;
  const auto engine = Engine::Load(kLlama, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  ScoreRequest request;
  request.text = text;
  request.prompt = prompt;
  request.stride = stride;
  const auto result = (*engine)->Score(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ScoreResult();
}

// Numbers in JSON are written so that reading gives the same double.
TEST(Score, JsonHasTheEnginesNumbers) {
  for (const std::string prompt : {"", "It wasn't "}) {
    const RunResult result =
        Invoke({kText, "--json", "--tokens", "--prompt", prompt});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const nlohmann::json json = Json(result.out);
    const ScoreResult expected = Expected(kText, prompt);
    EXPECT_EQ(json["ids"], expected.ids);
    EXPECT_EQ(json["log_probabilities"], expected.log_probabilities);
    EXPECT_EQ(json["mean_nll"], expected.mean_nll);
    EXPECT_EQ(json["perplexity"], expected.perplexity);
    EXPECT_EQ(json["tokens"], expected.ids.size());
    EXPECT_EQ(json["prompt_tokens"], expected.prompt_tokens);
    EXPECT_EQ(json["spellings"].size(), expected.ids.size());
    EXPECT_NEAR(json["log_probability"].get<double>(),
                -expected.mean_nll * static_cast<double>(expected.ids.size()),
                1e-9);
    for (const char* field :
         {"stride", "context", "tokens_per_second", "target", "threads",
          "activations", "cache", "weights", "model"}) {
      EXPECT_TRUE(json.contains(field)) << field;
    }
  }
  EXPECT_FALSE(Json(Invoke({kText, "--json"}).out).contains("ids"));
}

TEST(Score, TheTableHasALineForEachTokenAndTheSums) {
  const RunResult result = Invoke({"--tokens", kText});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ScoreResult expected = Expected(kText);
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), expected.ids.size() + 3);
  for (size_t i = 0; i < expected.ids.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], '\t');
    ASSERT_EQ(cells.size(), 3u);
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(cells[0], &value));
    EXPECT_NEAR(value, expected.log_probabilities[i], 1e-6);
    EXPECT_EQ(cells[1], absl::StrCat(expected.ids[i]));
    EXPECT_FALSE(cells[2].empty());
  }
  const std::string sums = Invoke({kText}).out;
  EXPECT_TRUE(
      absl::StartsWith(sums, absl::StrCat("tokens: ", expected.ids.size(),
                                          "\nmean negative log-likelihood: ")));
  EXPECT_TRUE(absl::EndsWith(result.out, "\n" + sums));
}

TEST(Score, TextFromArgumentFileAndPipeIsTheSame) {
  const std::string file = TestFolder("score") + "/t.txt";
  WriteFile(file, absl::StrCat(kText, "\n"));
  const std::string expected = Invoke({kText}).out;
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(Invoke({"--file", file}).out, expected);
  EXPECT_EQ(Invoke({}, Pipe(absl::StrCat(kText, "\n"))).out, expected);
  EXPECT_EQ(Invoke({"--file", "-"}, Pipe(kText)).out, expected);
  RunOptions bazel;  // as `bazel run` starts programs
  bazel.environment = {{"BUILD_WORKING_DIRECTORY",
                        std::filesystem::path(file).parent_path().string()}};
  EXPECT_EQ(RunProgram(kProgram,
                       {"--model", std::filesystem::absolute(kLlama).string(),
                        "--file", "t.txt"},
                       bazel)
                .out,
            expected);
  // Text behind -- may look like a flag.
  EXPECT_NE(Invoke({"--", "--json"}).out, Invoke({"--", "-json"}).out);
}

TEST(Score, EachLineIsATextOfItsOwn) {
  const RunResult result =
      Invoke({"--lines"}, Pipe("The quick brown fox\n\nIt wasn't\r\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "-\t-\t0\t");
  for (const auto& [index, text] :
       {std::pair<size_t, std::string>{0, kText}, {2, "It wasn't"}}) {
    const std::vector<std::string> cells = absl::StrSplit(lines[index], '\t');
    const ScoreResult expected = Expected(text);
    ASSERT_EQ(cells.size(), 4u);
    double mean = 0;
    EXPECT_TRUE(absl::SimpleAtod(cells[0], &mean));
    EXPECT_NEAR(mean, expected.mean_nll, 1e-6);
    EXPECT_EQ(cells[2], absl::StrCat(expected.ids.size()));
    EXPECT_EQ(cells[3], text);
  }
  EXPECT_EQ(Invoke({"--lines", "one two\nthree"}).out,
            Invoke({"--lines"}, Pipe("one two\nthree\n")).out);
  EXPECT_EQ(Invoke({"--lines"}, Pipe("")).out, "");
  EXPECT_EQ(Invoke({"--lines"}, Pipe("")).exit_code, 0);
}

TEST(Score, JsonLinesHaveNumbersTextsAndPrompts) {
  const RunResult result =
      Invoke({"--lines", "--json", "--tokens", "--prompt", "It wasn't"},
             Pipe(" the first\n\n the \"last\"\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Json(lines[i])["line"], i + 1);
  }
  EXPECT_EQ(Json(lines[0])["log_probabilities"],
            Expected(" the first", "It wasn't").log_probabilities);
  EXPECT_EQ(Json(lines[1])["tokens"], 0);
  EXPECT_FALSE(Json(lines[1]).contains("mean_nll"));
  EXPECT_EQ(Json(lines[2])["text"], " the \"last\"");
}

TEST(Score, ABadLineIsNamedAndTheOthersAreScored) {
  std::string longer;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&longer, "word ");
  const RunOptions input = Pipe(absl::StrCat("one two\n", longer, "\nthree"));
  const RunResult result = Invoke({"--lines", "--json"}, input);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(absl::StartsWith(result.err, "line 2: ") ||
              absl::StartsWith(result.err, "score: line 2: "))
      << result.err;
  EXPECT_TRUE(absl::StrContains(result.err, "context of 128"));
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(Json(lines[0]).contains("perplexity"));
  EXPECT_TRUE(absl::StrContains(Json(lines[1]).value("error", ""), "128"));
  EXPECT_TRUE(Json(lines[2]).contains("perplexity"));
  const RunResult text = Invoke({"--lines"}, input);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(Lines(text.out)[1], absl::StrCat("-\t-\t0\t", longer));
}

TEST(Score, StrideScoresWhatIsLongerThanTheContext) {
  std::string longer;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&longer, "word", i, " ");
  const auto json =
      Json(Invoke({longer, "--json", "--tokens", "--context=32", "--stride=20"})
               .out);
  const ScoreResult expected = Expected(longer, "", 20, 32);
  EXPECT_GT(expected.ids.size(), 100u);
  EXPECT_EQ(json["log_probabilities"], expected.log_probabilities);
  EXPECT_EQ(json["stride"], 20);
  EXPECT_EQ(json["context"], 32);
}

TEST(Score, NumbersAreTheSameForAnyThreadsAndChunk) {
  const auto numbers = [](Arguments more) {
    more.insert(more.end(), {"--json", "--tokens", kText});
    return Json(Invoke(more).out)["log_probabilities"];
  };
  const auto expected = numbers({});
  EXPECT_EQ(numbers({"--threads=1", "--prefill_chunk=1"}), expected);
  EXPECT_EQ(numbers({"--threads=3"}), expected);
  EXPECT_NE(numbers({"--cache=bf16"}), expected);
}

TEST(Score, StatsGoToStandardError) {
  const RunResult result =
      Invoke({"--lines", "--stats", "--threads=2"}, Pipe("one two\nthree\n"));
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"texts: 2", "tokens/s", "over all tokens",
                           "threads: 2", "target: ", "weights: "}) {
    EXPECT_TRUE(absl::StrContains(result.err, word)) << result.err;
    EXPECT_FALSE(absl::StrContains(result.out, word));
  }
}

TEST(Score, HelpTeachesByExampleAndNamesEachFlag) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(absl::StrContains(result.out, "score --file book.txt"));
  for (const char* flag :
       {"file", "lines", "prompt", "stride", "special", "model", "threads",
        "target", "activations", "cache", "weights", "context", "prefill_chunk",
        "tokens", "json", "stats"}) {
    EXPECT_TRUE(absl::StrContains(result.out, absl::StrCat("  --", flag)))
        << flag;
  }
}

void ExpectError(const RunResult& result, int exit_code,
                 const std::vector<std::string>& words) {
  ExpectErrorLine(result, "score", exit_code, words);
}

TEST(ScoreErrors, Usage) {
  ExpectError(Invoke({"a", "b"}), 2, {"'b'", "in quotes"});
  ExpectError(Invoke({"a", "--file=b"}), 2, {"both a text and --file"});
  ExpectError(Invoke({"a", "--stride=-1"}), 2, {"--stride", "'-1'"});
  ExpectError(Invoke({"a", "--target=AVX9"}), 2, {"--target", "'AVX9'"});
  ExpectError(Invoke({"a", "--lines", "--tokens"}), 2, {"--json"});
  ExpectError(Invoke({"a", "--token"}), 2, {"did you mean --tokens?"});
  RunOptions terminal;
  terminal.terminal = true;
  EXPECT_TRUE(absl::StrContains(Invoke({}, terminal).err, "no text: give one"));
}

TEST(ScoreErrors, TextsAndModels) {
  ExpectError(Invoke({""}), 1, {"the text is empty"});
  ExpectError(Invoke({}, Pipe("\n")), 1, {"the text is empty"});
  ExpectError(Invoke({"--file=none.txt"}), 1, {"none.txt", "No such file"});
  ExpectError(Invoke({"--file=none.txt", "--lines"}), 1,
              {"none.txt", "No such file"});
  ExpectError(Invoke({"--file=tests", "--lines"}), 1, {"tests", "directory"});
  ExpectError(Invoke({"a", "--stride=128"}), 1, {"--stride", "128"});
  std::string longer;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&longer, "word ");
  ExpectError(Invoke({longer}), 1, {"context of 128", "stride"});
  ExpectError(RunProgram(kProgram, {"a"}), 1, {"without a default model"});
  ExpectError(RunProgram(kProgram, {"a", "--model=none.gguf"}), 1,
              {"none.gguf"});
}

TEST(ScoreErrors, FullDisk) {
  RunOptions options;
  options.out_file = "/dev/full";
  ExpectError(Invoke({kText}, options), 1,
              {"cannot write the output: No space left"});
  options.in = "a b\nc d\n";
  ExpectError(Invoke({"--lines"}, options), 1, {"cannot write the output"});
}

TEST(ScoreBehaviour, AClosedPipeIsNoError) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {"--model", kLlama, "--lines"}, options);
  child.CloseOut();
  std::string lines;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&lines, "line ", i, "\n");
  child.Send(lines);
  child.CloseIn();
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.err, "");
}

// So another program may ask line by line.
TEST(ScoreBehaviour, EachLineIsAnsweredBeforeTheNextComes) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {"--model", kLlama, "--lines"}, options);
  for (const char* line : {"one two", "three four", "five six"}) {
    child.Send(absl::StrCat(line, "\n"));
    ASSERT_TRUE(child.WaitForOut(absl::StrCat("\t", line, "\n"))) << line;
  }
  child.Send("no newline");
  child.CloseIn();
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(Lines(result.out).size(), 4u);
}

TEST(ScoreBehaviour, CtrlCWhileItWaitsForALineEndsIt) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {"--model", kLlama, "--lines"}, options);
  child.Send("one two\n");
  ASSERT_TRUE(child.WaitForOut("one two\n"));
  child.Signal(SIGINT);
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "score: interrupted\n");
}

TEST(ScoreBehaviour, CtrlCEndsItCleanlyAndTheSecondAtOnce) {
  for (const bool again : {false, true}) {
    RunOptions options;
    options.block_out = true;
    options.in = "\n";  // its line of output fits into the pipe, others wait
    for (int i = 0; i < 200; ++i) absl::StrAppend(&options.in, "a line\n");
    Child child(kProgram, {"--model", kLlama, "--lines", "--threads=1"},
                options);
    ASSERT_TRUE(child.WaitForText());
    ASSERT_TRUE(child.WaitUntilAsleep());  // in a write, which nobody reads
    child.Signal(SIGINT);
    ASSERT_TRUE(child.WaitForDefaultInterrupt());
    if (again) child.Signal(SIGINT);
    const RunResult result = child.Finish();
    if (again) {
      EXPECT_EQ(result.signal, SIGINT);
      continue;
    }
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err, "score: interrupted\n");
  }
}

}  // namespace
}  // namespace lanewise
