// What the program does with bad input, signals, closed pipes and terminals.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/generate_no_model";

void ExpectError(const std::vector<std::string>& arguments, int exit_code,
                 const std::vector<std::string>& words,
                 const RunOptions& options = {}) {
  ExpectErrorLine(RunProgram(kProgram, arguments, options), "generate",
                  exit_code, words);
}

TEST(GenerateErrors, Usage) {
  ExpectError({"--frobnicate"}, 2, {"unknown flag --frobnicate"});
  ExpectError({"--prompt=a", "--temprature=1"}, 2,
              {"--temprature", "did you mean --temperature?"});
  ExpectError({"--prompt=a", "--file=b"}, 2, {"both --prompt and --file"});
  ExpectError({"--prompt", "Write", "one"}, 2, {"'one'", "in quotes"});
  ExpectError({"--prompt"}, 2, {"--prompt needs a value"});
  ExpectError({"--prompt=a", "--max_tokens=many"}, 2,
              {"--max_tokens", "whole number", "'many'"});
  ExpectError({"--prompt=a", "--threads=5000"}, 2, {"--threads", "1024"});
  ExpectError({"--prompt=a", "--target=AVX9"}, 2, {"--target", "'AVX9'"});
  ExpectError({"--prompt=a", "--cache=f8"}, 2, {"--cache", "bf16", "'f8'"});
  ExpectError({"--prompt=a", "--activations=int8"}, 2,
              {"--activations", "native, f32"});
  ExpectError({"--prompt=a", "--raw", "--system=b"}, 2, {"--system", "--raw"});
  ExpectError({"--prompt=a", "--special"}, 2, {"--special", "--raw"});
  ExpectError({"--prompt=a", "--stop="}, 2, {"--stop"});
  ExpectError({"--prompt=a", "--stop=\xff"}, 2, {"--stop", "UTF-8", "\\xff"});
}

TEST(GenerateErrors, S2SamplingValues) {
  for (const char* value : {"nan", "inf", "-inf", "-1", "warm"}) {
    ExpectError({"--prompt=a", absl::StrCat("--temperature=", value)}, 2,
                {"--temperature"});
  }
  ExpectError({"--prompt=a", "--top_p=1.5"}, 2, {"--top_p", "0 to 1", "1.5"});
  ExpectError({"--prompt=a", "--top_k=-1"}, 2, {"--top_k"});
  ExpectError({"--prompt=a", "--min_p=2"}, 2, {"--min_p"});
  ExpectError({"--prompt=a", "--typical_p=0"}, 2, {"--typical_p"});
  ExpectError({"--prompt=a", "--repetition_penalty=0"}, 2,
              {"--repetition_penalty"});
  ExpectError({"--prompt=a", "--no_repeat_ngram=-2"}, 2, {"--no_repeat_ngram"});
  ExpectError({"--prompt=a", "--seed=-1"}, 2, {"--seed"});
}

TEST(GenerateErrors, Prompt) {
  const std::vector<std::string> raw = {"--model", kLlama, "--raw"};
  const auto with = [&raw](const std::string& argument) {
    std::vector<std::string> arguments = raw;
    arguments.push_back(argument);
    return arguments;
  };
  ExpectError(with("--prompt="), 1, {"the prompt is empty"});
  ExpectError(raw, 1, {"the prompt is empty"});  // an empty pipe
  RunOptions newline;
  newline.in = "\n";
  ExpectError(raw, 1, {"the prompt is empty"}, newline);
  const std::string folder = TestFolder("prompts");
  ExpectError(with("--file=" + folder + "/none"), 1,
              {folder + "/none: No such file"});
  ExpectError(with("--file=" + folder), 1, {folder, "directory"});
  WriteFile(folder + "/empty", "");
  ExpectError(with("--file=" + folder + "/empty"), 1, {"the prompt is empty"});
}

TEST(GenerateErrors, A17PromptLongerThanTheContextNamesBothNumbers) {
  RunOptions options;
  for (int i = 0; options.in.size() < 1'000'000; ++i) {
    absl::StrAppend(&options.in, "word", i, i % 10 == 0 ? "\n" : " ");
  }
  const auto start = std::chrono::steady_clock::now();
  ExpectError({"--model", kLlama, "--raw"}, 1,
              {" tokens do not fit into the context of 128"}, options);
  // Linear in the text: a second of work, sixty on a loaded machine.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  options.in = std::string(1'000'000, 'Z');
  ExpectError({"--model", kLlama, "--raw"}, 1, {"context of 128"}, options);
}

TEST(GenerateErrors, Models) {
  const auto raw = [](const std::string& model) {
    return std::vector<std::string>{"--model", model, "--raw", "--prompt=a"};
  };
  const std::string folder = TestFolder("models");
  ExpectError({"--prompt=a"}, 1, {"without a default model", "--model"});
  ExpectError(raw(folder + "/none"), 1, {folder + "/none", "No such file"});
  ExpectError(raw(folder), 1, {folder, "no model", "config.json", ".gguf"});
  const std::string bytes = ReadFile(kLlamaGguf);
  ASSERT_GT(bytes.size(), 30000u);
  WriteFile(folder + "/cut.gguf", bytes.substr(0, bytes.size() - 100));
  ExpectError(raw(folder + "/cut.gguf"), 1, {folder + "/cut.gguf"});
  WriteFile(folder + "/text.gguf", "This is not a model, only a text.");
  ExpectError(raw(folder + "/text.gguf"), 1, {folder + "/text.gguf"});
  std::string unknown = bytes;
  const size_t name = unknown.find("llama", unknown.find("architecture"));
  ASSERT_NE(name, std::string::npos);
  unknown.replace(name, 5, "zebra");
  WriteFile(folder + "/unknown.gguf", unknown);
  ExpectError(raw(folder + "/unknown.gguf"), 1, {"zebra", "llama"});
  ExpectError({"--model", kLlama, "--prompt=a"}, 1,
              {"no chat template", "--raw"});
}

TEST(GenerateErrors, FullDisk) {
  RunOptions options;
  options.out_file = "/dev/full";
  ExpectError({"--model", kLlama, "--raw", "--prompt=Hello"}, 1,
              {"cannot write the output: No space left"}, options);
  ExpectError({"--model", kLlama, "--raw", "--prompt=Hello", "--json"}, 1,
              {"cannot write the output"}, options);
}

TEST(GenerateBehaviour, T23BytesThatAreNoUtf8AreReplaced) {
  RunOptions options;
  options.in = "abc\xff\xe6\xad";
  const RunResult result = RunProgram(
      kProgram, {"--model", kLlamaGguf, "--json", "--max_tokens=2"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(Json(result.out).is_object()) << result.out;
  RunOptions replaced;
  replaced.in = "abc\xEF\xBF\xBD\xEF\xBF\xBD";
  EXPECT_EQ(Json(RunProgram(kProgram,
                            {"--model", kLlamaGguf, "--json", "--max_tokens=2"},
                            replaced)
                     .out)["logits_hash"],
            Json(result.out)["logits_hash"]);
}

TEST(GenerateBehaviour, AClosedPipeIsNoError) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {"--model", kLlama, "--raw", "--ignore_end"}, options);
  child.CloseOut();
  child.Send("The quick brown fox");
  child.CloseIn();
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.err, "");
}

TEST(GenerateBehaviour, CtrlCWhileReadingStandardInputEndsTheProcess) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {"--model", kLlama, "--raw"}, options);
  child.Signal(SIGINT);
  const RunResult result = child.Finish();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.out, "");
}

// Small models end before a signal can reach them, so nobody takes the first
// text from the pipe before the signal has come.
class InterruptTest : public testing::Test {
 protected:
  static RunOptions Blocked() {
    RunOptions options;
    options.block_out = true;
    return options;
  }
  const std::vector<std::string> arguments_ = {"--model", kLlama, "--raw",
                                               "--prompt=The quick brown fox",
                                               "--ignore_end"};
};

TEST_F(InterruptTest, CtrlCEndsGenerationCleanly) {
  Child child(kProgram, arguments_, Blocked());
  ASSERT_TRUE(child.WaitForText());
  child.Signal(SIGINT);
  ASSERT_TRUE(child.WaitForDefaultInterrupt());
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "generate: interrupted\n");
  EXPECT_EQ(result.out.back(), '\n');
  // Without the signal 120 tokens would have come.
  EXPECT_LT(result.out.size() - result.out.rfind('#'), 60u);
}

TEST_F(InterruptTest, TheSecondCtrlCEndsTheProcess) {
  std::vector<std::string> arguments = arguments_;
  arguments.push_back("--threads=1");
  Child child(kProgram, arguments, Blocked());
  ASSERT_TRUE(child.WaitForText());
  ASSERT_TRUE(child.WaitUntilAsleep());  // in a write, which nobody reads
  child.Signal(SIGINT);
  ASSERT_TRUE(child.WaitForDefaultInterrupt());
  child.Signal(SIGINT);
  EXPECT_EQ(child.Finish().signal, SIGINT);
}

class ChatTest : public testing::Test {
 protected:
  static std::vector<std::string> Arguments() {
    return {"--model", kLlamaGguf, "--max_tokens=4", "--ignore_end"};
  }
  static RunOptions Terminal() {
    RunOptions options;
    options.terminal = true;
    return options;
  }
};

TEST_F(ChatTest, AnswersUntilExit) {
  Child child(kProgram, Arguments(), Terminal());
  ASSERT_TRUE(child.WaitForErr("> "));
  child.Send("Hello\n");
  ASSERT_TRUE(child.WaitForOut("\n"));
  child.Send("/nonsense\n");
  ASSERT_TRUE(child.WaitForErr("unknown command '/nonsense'"));
  child.Send("/reset\n");
  child.Send("/exit\n");
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(absl::StrContains(result.out, "> "));
}

TEST_F(ChatTest, ResetGivesTheFirstAnswerAgain) {
  Child child(kProgram, Arguments(), Terminal());
  ASSERT_TRUE(child.WaitForErr("> "));
  child.Send("Hello\n");
  ASSERT_TRUE(child.WaitForOut("\n"));
  child.Send("/reset\n");
  child.Send("Hello\n");
  child.Send("/exit\n");
  const RunResult result = child.Finish();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(result.out.size() % 2, 0u);
  const std::string half = result.out.substr(0, result.out.size() / 2);
  EXPECT_EQ(result.out, half + half);
  const RunResult once =
      RunProgram(kProgram, {"--model", kLlamaGguf, "--max_tokens=4",
                            "--ignore_end", "--prompt=Hello"});
  EXPECT_EQ(once.out, half);
}

TEST_F(ChatTest, EndOfInputAndCtrlCAtThePromptEnd) {
  {
    Child child(kProgram, Arguments(), Terminal());
    ASSERT_TRUE(child.WaitForErr("> "));
    child.Send("\x04");  // Ctrl-D
    EXPECT_EQ(child.Finish().exit_code, 0);
  }
  Child child(kProgram, Arguments(), Terminal());
  ASSERT_TRUE(child.WaitForErr("> "));
  child.Signal(SIGINT);
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.signal, 0);
}

TEST_F(ChatTest, A17AFullContextIsSaidAndTheChatGoesOn) {
  Child child(kProgram, Arguments(), Terminal());
  ASSERT_TRUE(child.WaitForErr("> "));
  std::string line;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&line, "word ");
  child.Send(line + "\n");
  ASSERT_TRUE(child.WaitForErr("/reset starts over\r\n> "));
  child.Send("Hello\n");
  EXPECT_TRUE(child.WaitForOut("\n"));
  child.Send("/exit\n");
  EXPECT_EQ(child.Finish().exit_code, 0);
}

TEST_F(ChatTest, CtrlCEndsTheAnswerOnly) {
  RunOptions options = Terminal();
  options.block_out = true;
  Child child(kProgram,
              {"--model", kLlamaGguf, "--max_tokens=60", "--ignore_end"},
              options);
  ASSERT_TRUE(child.WaitForErr("> "));
  child.Send("Hello\n");
  ASSERT_TRUE(child.WaitForText());
  child.Signal(SIGINT);
  ASSERT_TRUE(child.WaitForDefaultInterrupt());
  ASSERT_TRUE(child.WaitForOut("\n"));
  child.Send("/exit\n");
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.signal, 0);
  EXPECT_LT(result.out.size() - result.out.rfind('#'), 40u);
}

TEST_F(ChatTest, JsonIsForOneMessage) {
  std::vector<std::string> arguments = Arguments();
  arguments.push_back("--json");
  const RunResult result = RunProgram(kProgram, arguments, Terminal());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(absl::StrContains(result.err, "--json is for one message"));
}

}  // namespace
}  // namespace lanewise
