// The program on small models: recorded continuations, sources of the prompt,
// the JSON object, chat.
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

constexpr char kProgram[] = "tools/generate_no_model";

RunResult Invoke(std::vector<std::string> arguments,
                 const RunOptions& options = {}) {
  return RunProgram(kProgram, arguments, options);
}

std::vector<std::string> Exact(const std::string& model) {
  return {"--model", model, "--raw", "--activations=f32", "--cache=f32"};
}

std::vector<std::string> Join(std::vector<std::string> a,
                              const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Generate, ContinuesTextsAsRecorded) {
  for (const std::string name : {"llama", "gpt2"}) {
    const std::string model = "tests/data/models/" + name;
    const nlohmann::json golden = Json(ReadFile(model + "/case.json"));
    ASSERT_FALSE(golden["text_runs"].empty());
    for (const nlohmann::json& run : golden["text_runs"]) {
      const std::string text = run["text"];
      const std::vector<int> ids = run["new_ids"];
      SCOPED_TRACE(absl::StrCat(name, ": ", text));
      const RunResult result = Invoke(
          Join(Exact(model), {"--prompt", text, "--json", "--max_tokens",
                              std::to_string(ids.size()), "--ignore_end"}));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err, "");
      const nlohmann::json json = Json(result.out);
      ASSERT_TRUE(json.is_object()) << result.out;
      EXPECT_EQ(json["ids"], run["new_ids"]);
      EXPECT_EQ(json["text"], run["new_text"]);
      EXPECT_EQ(json["prompt_tokens"], run["input_ids"].size());
    }
  }
}

TEST(Generate, StreamsTheTextAndEndsTheLine) {
  const nlohmann::json run =
      Json(ReadFile(absl::StrCat(kLlama, "/case.json")))["text_runs"][0];
  const std::string text = run["text"];
  const RunResult result =
      Invoke(Join(Exact(kLlama), {"--prompt", text, "--max-tokens=24"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, run["new_text"].get<std::string>() + "\n");
  EXPECT_EQ(result.err, "");
}

TEST(Generate, PromptFromFileAndPipeIsTheSame) {
  const std::string file = TestFolder("prompt") + "/p.txt";
  WriteFile(file, "The quick brown fox\n");
  const auto arguments = Join(Exact(kLlama), {"--max_tokens=8"});
  const RunResult flag =
      Invoke(Join(arguments, {"--prompt", "The quick brown fox"}));
  EXPECT_FALSE(flag.out.empty());
  EXPECT_EQ(Invoke(Join(arguments, {"--file", file})).out, flag.out);
  RunOptions pipe;
  pipe.in = "The quick brown fox\n";
  EXPECT_EQ(Invoke(arguments, pipe).out, flag.out);
  EXPECT_EQ(Invoke(Join(arguments, {"--file", "-"}), pipe).out, flag.out);
  RunOptions bazel;  // as `bazel run` starts programs
  bazel.environment = {{"BUILD_WORKING_DIRECTORY",
                        std::filesystem::path(file).parent_path().string()}};
  EXPECT_EQ(Invoke(Join({"--model", std::filesystem::absolute(kLlama).string(),
                         "--raw", "--activations=f32", "--cache=f32"},
                        {"--max_tokens=8", "--file", "p.txt"}),
                   bazel)
                .out,
            flag.out);
}

TEST(Generate, JsonHasEveryField) {
  const RunResult result = Invoke(
      {"--model", kLlamaGguf, "--raw", "--prompt", "Hello", "--json",
       "--max_tokens=5", "--threads=1", "--temperature=0.9", "--seed=42"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = Json(result.out);
  for (const char* field :
       {"text", "ids", "logits_hash", "finish_reason", "prompt_tokens",
        "prompt_tokens_per_second", "decode_tokens_per_second",
        "time_to_first_token_ms", "seed", "target", "threads", "activations",
        "cache", "weights", "model"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json.value("seed", 0), 42);
  EXPECT_EQ(json.value("threads", 0), 1);
  EXPECT_EQ(json.value("activations", ""), "native");
  EXPECT_EQ(json.value("cache", ""), "f16");
  EXPECT_EQ(json.value("model", ""), kLlamaGguf);
  EXPECT_EQ(json.value("logits_hash", "").size(), 64u);
  EXPECT_GT(json.value("prompt_tokens_per_second", 0.0), 0);
}

TEST(Generate, HashIsTheSameForAnyThreadsChunkAndFmaTarget) {
  const auto hash = [](std::vector<std::string> extra) {
    const RunResult result =
        Invoke(Join({"--model", kLlamaGguf, "--raw", "--json", "--max_tokens=6",
                     "--prompt", "The quick brown fox jumps over"},
                    extra));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json(result.out).value("logits_hash", "");
  };
  const std::string expected = hash({});
  EXPECT_EQ(hash({"--threads=1"}), expected);
  EXPECT_EQ(hash({"--threads=3", "--prefill_chunk=1"}), expected);
  EXPECT_EQ(hash({"--context=64"}), expected);
  EXPECT_NE(hash({"--cache=f32", "--activations=f32"}), expected);
}

TEST(Generate, WeightsAreQuantizedWhileLoading) {
  const auto run = [](const std::string& model, const std::string& weights) {
    return Invoke({"--model", model, "--raw", "--json", "--max_tokens=6",
                   "--prompt=The quick brown fox", "--weights", weights});
  };
  const std::string model = "tests/data/gguf/llama_f32/model.gguf";
  const RunResult stored = run(model, "stored"), q8_0 = run(model, "q8_0");
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  ASSERT_EQ(q8_0.exit_code, 0) << q8_0.err;
  EXPECT_EQ(q8_0.err, "");
  EXPECT_EQ(Json(q8_0.out)["weights"], "q8_0");
  EXPECT_NE(Json(q8_0.out)["logits_hash"], Json(stored.out)["logits_hash"]);
  // What cannot be done is said, and the answer is that of the file.
  const RunResult again = run(kLlamaGguf, "q8_0");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(again.err, "are quantized in the file"))
      << again.err;
  EXPECT_EQ(Json(again.out)["logits_hash"],
            Json(run(kLlamaGguf, "stored").out)["logits_hash"]);
  EXPECT_EQ(run(model, "q9").exit_code, 2);
}

TEST(Generate, S5SeedsReproduceAndTheReportedSeedToo) {
  const auto run = [](std::vector<std::string> extra) {
    return Json(Invoke(Join({"--model", kLlamaGguf, "--raw", "--json",
                             "--prompt=Hello", "--temperature=1.5"},
                            extra))
                    .out);
  };
  EXPECT_EQ(run({"--seed=7"})["ids"], run({"--seed=7"})["ids"]);
  EXPECT_NE(run({"--seed=7"})["ids"], run({"--seed=8"})["ids"]);
  const nlohmann::json random = run({});
  const std::string seed = absl::StrCat(random["seed"].get<uint64_t>());
  EXPECT_EQ(run({"--seed", seed})["ids"], random["ids"]);
}

TEST(Generate, StopStringsEndTheText) {
  const auto arguments =
      Join(Exact(kLlama), {"--prompt", "The quick brown fox", "--json"});
  const nlohmann::json json =
      Json(Invoke(Join(arguments, {"--stop", "never", "--stop", "been"})).out);
  EXPECT_EQ(json.value("finish_reason", ""), "stop");
  EXPECT_TRUE(absl::EndsWith(json.value("text", ""), "xIun "))
      << json.value("text", "");
}

TEST(Generate, StatsGoToStandardError) {
  const RunResult result =
      Invoke({"--model", kLlamaGguf, "--raw", "--prompt=Hello", "--stats",
              "--max_tokens=4", "--threads=2"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"tokens/s", "first token after", "threads: 2",
                           "target: ", "weights: ", "seed "}) {
    EXPECT_TRUE(absl::StrContains(result.err, word)) << result.err;
    EXPECT_FALSE(absl::StrContains(result.out, word));
  }
}

TEST(Generate, MessagesGoThroughTheChatTemplate) {
  const auto prompt_tokens = [](std::vector<std::string> extra) {
    const RunResult result =
        Invoke(Join({"--model", kLlamaGguf, "--json", "--max_tokens=1",
                     "--prompt", "Hello"},
                    extra));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json(result.out).value("prompt_tokens", 0);
  };
  const int raw = prompt_tokens({"--raw"});
  const int chat = prompt_tokens({});
  EXPECT_GT(chat, raw);
  EXPECT_GT(prompt_tokens({"--system", "Be brief."}), chat);
}

TEST(Generate, T28MessagesDoNotSpellControlTokens) {
  const auto prompt_tokens = [](std::vector<std::string> extra) {
    const RunResult result =
        Invoke(Join({"--model", kLlamaGguf, "--json", "--max_tokens=1",
                     "--prompt", "<|endoftext|>"},
                    extra));
    return Json(result.out).value("prompt_tokens", 0);
  };
  const int special = prompt_tokens({"--raw", "--special"});
  EXPECT_EQ(special, 1);
  EXPECT_GT(prompt_tokens({"--raw"}), special);
}

TEST(Generate, HelpTeachesByExampleAndNamesEachFlag) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(absl::StrContains(result.out, "generate --prompt \""));
  for (const char* flag : {"prompt",
                           "file",
                           "model",
                           "raw",
                           "system",
                           "max_tokens",
                           "temperature",
                           "top_k",
                           "top_p",
                           "min_p",
                           "typical_p",
                           "repetition_penalty",
                           "presence_penalty",
                           "frequency_penalty",
                           "no_repeat_ngram",
                           "seed",
                           "stop",
                           "threads",
                           "target",
                           "activations",
                           "cache",
                           "weights",
                           "context",
                           "prefill_chunk",
                           "stats",
                           "json",
                           "special",
                           "ignore_end"}) {
    EXPECT_TRUE(absl::StrContains(result.out, absl::StrCat("  --", flag)))
        << flag;
  }
}

}  // namespace
}  // namespace lanewise
