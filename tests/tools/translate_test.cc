// The program `translate` with the model that comes with it, and with one whose
// files say how to search.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/translate";
constexpr char kDefault[] = "tools/models/g2p_t5";
constexpr char kT5[] = "tests/data/models/t5";
using Arguments = std::vector<std::string>;

RunResult Invoke(const Arguments& arguments, const RunOptions& options = {}) {
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

// What the engine makes of it, with the model's own settings and `edit`.
template <class Edit>
Translation Expected(const std::string& model, const std::string& text,
                     const Edit& edit) {
  const auto engine = Engine::Load(model, {});
  EXPECT_TRUE(engine.ok()) << engine.status();
  TranslateRequest request;
  request.texts = {text};
  request.hash_logits = true;
  auto options = (*engine)->TranslateDefaults(request);
  EXPECT_TRUE(options.ok()) << options.status();
  edit(*options);
  request.options = *options;
  const auto result = (*engine)->Translate(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->translations.at(0) : Translation();
}

Translation Expected(const std::string& model, const std::string& text) {
  return Expected(model, text, [](TranslateOptions&) {});
}

TEST(Translate, TellsHowWordsArePronounced) {
  const RunResult result = Invoke({"beezley", "hello", "world"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "B IY1 Z L IY0\nHH EH1 L OW0\nW ER1 L D\n");
  EXPECT_EQ(Invoke({"hello"}).out, "HH EH1 L OW0\n");
}

TEST(Translate, ArgumentsFileAndPipeAreTheSame) {
  const std::string file = TestFolder("translate") + "/words.txt";
  WriteFile(file, "hello\n\nworld\r\ncat");
  const RunResult result = Invoke({"--file", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "HH EH1 L OW0\n\nW ER1 L D\nK AE1 T\n");
  EXPECT_EQ(Invoke({"--batch=2"}, Pipe(ReadFile(file))).out, result.out);
  EXPECT_EQ(Invoke({"--file=-"}, Pipe(ReadFile(file))).out, result.out);
  EXPECT_EQ(Invoke({"hello", "", "world", "cat"}).out, result.out);
  EXPECT_EQ(Invoke({"--batch=1", "hello", "", "world", "cat"}).out, result.out);
  EXPECT_EQ(Invoke({""}).out, "\n");
  EXPECT_EQ(Invoke({}, Pipe("")).out, "");
  RunOptions bazel;  // as `bazel run` starts programs
  bazel.environment = {{"BUILD_WORKING_DIRECTORY",
                        std::filesystem::path(file).parent_path().string()}};
  EXPECT_EQ(Invoke({"--file=words.txt"}, bazel).out, result.out);
  // Text behind -- may look like a flag.
  EXPECT_EQ(Lines(Invoke({"--", "--json"}).out).size(), 1u);
}

// A fresh process that knows nothing of Bazel: the folder is found beside it.
TEST(Translate, TheModelIsFoundBesideABareProgram) {
  const std::string folder = TestFolder("bare");
  std::error_code error;
  std::filesystem::create_symlink(std::filesystem::absolute(kProgram),
                                  folder + "/translate", error);
  ASSERT_FALSE(error) << error.message();
  const char* runfiles = getenv("TEST_SRCDIR");
  ASSERT_NE(runfiles, nullptr);
  std::filesystem::create_directory_symlink(
      runfiles, folder + "/translate.runfiles", error);
  ASSERT_FALSE(error) << error.message();
  RunOptions options;
  for (const char* name :
       {"RUNFILES_DIR", "RUNFILES_MANIFEST_FILE", "TEST_SRCDIR",
        "JAVA_RUNFILES", "PYTHON_RUNFILES", "BUILD_WORKING_DIRECTORY"}) {
    options.environment.emplace_back(name, "");
  }
  const RunResult result =
      RunProgram(folder + "/translate", {"hello"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "HH EH1 L OW0\n");
}

TEST(Translate, JsonHasTheEnginesNumbers) {
  const RunResult result =
      Invoke({"--json", "--beams=4", "--n-best", "3", "beezley", "", "cat"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  const Translation expected =
      Expected(kDefault, "beezley", [](TranslateOptions& options) {
        options.beams.num_beams = 4;
        options.beams.num_return_sequences = 3;
      });
  const nlohmann::json json = Json(lines[0]);
  EXPECT_EQ(json["number"], 1);
  EXPECT_EQ(json["source"], "beezley");
  EXPECT_EQ(json["text"], expected.text);
  EXPECT_EQ(json["ids"], expected.ids);
  EXPECT_EQ(json["logits_hash"], expected.logits_hash);
  EXPECT_EQ(json["source_tokens"], 8);
  EXPECT_EQ(json["finish_reason"], "end");
  EXPECT_EQ(json["beams"], 4);
  ASSERT_EQ(json["hypotheses"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Hypothesis& hypothesis = expected.hypotheses.at(i);
    EXPECT_EQ(json["hypotheses"][i]["text"], hypothesis.text);
    EXPECT_EQ(json["hypotheses"][i]["ids"], hypothesis.ids);
    EXPECT_EQ(json["hypotheses"][i]["score"], hypothesis.score);
    EXPECT_EQ(json["hypotheses"][i]["log_probability"],
              hypothesis.log_probability);
  }
  EXPECT_EQ(Json(lines[1])["text"], "");
  EXPECT_FALSE(Json(lines[1]).contains("ids"));
  EXPECT_EQ(Json(lines[2])["text"], "K AE1 T");
  for (const char* field :
       {"seed", "target", "threads", "activations", "cache", "weights"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_TRUE(absl::EndsWith(json.value("model", ""), kDefault));
}

// That model's generation_config.json has 4 beams, a length penalty of 0.8,
// early stopping, 23 new tokens.
TEST(Translate, TheModelsSettingsHoldButForTheFlags) {
  const std::string text = "The quick brown fox jumps";
  const auto hash = [&](const Arguments& more) {
    Arguments arguments = {"--model", kT5, "--json", text};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = Invoke(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json(result.out).value("logits_hash", "");
  };
  EXPECT_EQ(hash({}), Expected(kT5, text).logits_hash);
  EXPECT_EQ(hash({"--beams=2", "--length_penalty=2", "--early_stopping=never",
                  "--max_tokens=9", "--min-tokens=3", "--no_repeat_ngram=2",
                  "--repetition_penalty=1.5"}),
            Expected(kT5, text, [](TranslateOptions& options) {
              options.beams.num_beams = 2;
              options.beams.length_penalty = 2;
              options.beams.early_stopping = EarlyStopping::kNever;
              options.max_tokens = 9;
              options.sampling.min_new_tokens = 3;
              options.sampling.no_repeat_ngram = 2;
              options.sampling.repetition_penalty = 1.5;
            }).logits_hash);
  EXPECT_EQ(hash({"--beams=1"}),
            Expected(kT5, text, [](TranslateOptions& options) {
              options.beams.num_beams = 1;
            }).logits_hash);
  // Sampling does not go with the model's beams.
  EXPECT_EQ(
      hash({"--temperature=0.9", "--top_k=20", "--top_p=0.9", "--seed=5"}),
      Expected(kT5, text, [](TranslateOptions& options) {
        options.beams.num_beams = 1;
        options.sampling.temperature = 0.9;
        options.sampling.top_k = 20;
        options.sampling.top_p = 0.9;
        options.sampling.seed = 5;
      }).logits_hash);
}

// The same model as GGUF, which tells the start token but no settings.
TEST(Translate, GgufGivesTheSameBits) {
  const std::string gguf = TestFolder("gguf") + "/t5.gguf";
  const RunResult written = RunProgram(
      "tools/quantize", {"--model", kT5, "--out", gguf, "--type", "F32"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  for (const Arguments& search :
       {Arguments{"--beams=1"},
        Arguments{"--beams=3", "--length_penalty=0.7", "--early_stopping=no"},
        Arguments{"--beams=1", "--temperature=2", "--seed=3"}}) {
    nlohmann::json found[2];
    for (const bool folder : {false, true}) {
      Arguments arguments = {"--model", folder ? kT5 : gguf, "--json",
                             "--max_tokens=12", "The quick brown fox"};
      arguments.insert(arguments.end(), search.begin(), search.end());
      const RunResult result = Invoke(arguments);
      ASSERT_EQ(result.exit_code, 0) << result.err;
      found[folder] = Json(result.out);
    }
    EXPECT_EQ(found[0]["logits_hash"], found[1]["logits_hash"]);
    EXPECT_EQ(found[0]["ids"], found[1]["ids"]);
    EXPECT_EQ(found[0]["ids"].size(), 12u);
  }
}

// A copy of it with languages and a task.
std::string WithLanguages() {
  const std::string folder = TestFolder("languages");
  for (const char* file :
       {"config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json"}) {
    WriteFile(folder + "/" + file, ReadFile(absl::StrCat(kT5, "/", file)));
  }
  nlohmann::json tokenizer = Json(ReadFile(folder + "/tokenizer.json"));
  const char* names[] = {"__en__", "__de__"};
  for (nlohmann::json& token : tokenizer["added_tokens"]) {
    const size_t index = token["id"].get<size_t>() - 268;
    if (index < 2) token["content"] = names[index];
  }
  WriteFile(folder + "/tokenizer.json", tokenizer.dump());
  nlohmann::json config = Json(ReadFile(folder + "/config.json"));
  config["task_specific_params"] = {
      {"short", {{"max_length", 4}, {"num_beams", 1}, {"prefix", "It "}}}};
  WriteFile(folder + "/config.json", config.dump());
  return folder;
}

TEST(Translate, M7LanguagesTasksAndPromptsReachTheEngine) {
  const std::string model = WithLanguages();
  const auto run = [&](const Arguments& more) {
    Arguments arguments = {"--model", model, "--json", "--beams=1", "42"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Invoke(arguments);
  };
  const RunResult both = run({"--source-language=en", "--target-language=de"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(Json(both.out)["ids"][0], 269);  // __de__
  const RunResult other =
      run({"--source_language=de", "--target_language=__en__"});
  EXPECT_EQ(Json(other.out)["ids"][0], 268);
  const RunResult prompt = run(
      {"--source-language=en", "--target-language=de", "--decoder-prompt=It"});
  EXPECT_NE(Json(prompt.out)["logits_hash"], Json(both.out)["logits_hash"]);
  EXPECT_EQ(prompt.exit_code, 0);
  const RunResult task =
      run({"--source-language=en", "--target-language=de", "--task=short"});
  EXPECT_EQ(Json(task.out)["ids"].size(), 3u) << task.err;
  for (const Arguments& missing :
       {Arguments{}, Arguments{"--source-language=en"},
        Arguments{"--target-language=de"}}) {
    const RunResult result = run(missing);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(absl::StrContains(result.err, "one of __de__, __en__"))
        << result.err;
  }
}

TEST(Translate, ABadTextIsNamedAndTheOthersAreTranslated) {
  const RunOptions input = Pipe("hello\nincomprehensibilities\nworld\n");
  const RunResult result = Invoke({"--context=20"}, input);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "HH EH1 L OW0\n\nW ER1 L D\n");
  EXPECT_TRUE(absl::StartsWith(result.err, "translate: text 2: 22 tokens"))
      << result.err;
  EXPECT_EQ(Lines(result.err).size(), 1u);
  const RunResult json = Invoke({"--context=20", "--json"}, input);
  EXPECT_EQ(json.exit_code, 1);
  const std::vector<std::string> lines = Lines(json.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(absl::StartsWith(Json(lines[1]).value("error", ""), "22 tokens"));
  EXPECT_EQ(Json(lines[2])["text"], "W ER1 L D");
  EXPECT_EQ(Json(lines[2])["number"], 3);
}

TEST(Translate, ResultsAreTheSameForAnyThreadsAndBatch) {
  const auto hashes = [](const Arguments& more) {
    Arguments arguments = {"--json", "--beams=3", "hello", "world", "beezley"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> all;
    for (const std::string& line : Lines(Invoke(arguments).out)) {
      all.push_back(Json(line).value("logits_hash", ""));
    }
    return all;
  };
  const auto expected = hashes({});
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(hashes({"--threads=1", "--batch=1"}), expected);
  EXPECT_EQ(hashes({"--threads=3", "--batch=2"}), expected);
  EXPECT_NE(hashes({"--activations=f32"}), expected);
  EXPECT_NE(hashes({"--cache=f32"}), expected);
}

TEST(Translate, StatsGoToStandardError) {
  const RunResult result = Invoke({"--stats", "--threads=2", "hello", "world"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"texts: 2", "source: 12 tokens", "tokens/s",
                           "translations: ", "threads: 2", "target: "}) {
    EXPECT_TRUE(absl::StrContains(result.err, word)) << result.err;
    EXPECT_FALSE(absl::StrContains(result.out, word));
  }
}

TEST(Translate, HelpTeachesByExampleAndNamesEachFlag) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(absl::StrContains(result.out, "translate beezley"));
  for (const char* flag : {"file",
                           "source_language",
                           "target_language",
                           "task",
                           "decoder_prompt",
                           "special",
                           "beams",
                           "n_best",
                           "length_penalty",
                           "early_stopping",
                           "max_tokens",
                           "min_tokens",
                           "repetition_penalty",
                           "no_repeat_ngram",
                           "temperature",
                           "top_k",
                           "top_p",
                           "seed",
                           "model",
                           "threads",
                           "batch",
                           "json",
                           "stats"}) {
    EXPECT_TRUE(absl::StrContains(result.out, absl::StrCat("  --", flag)))
        << flag;
  }
}

void ExpectError(const RunResult& result, int exit_code,
                 const std::vector<std::string>& words) {
  ExpectErrorLine(result, "translate", exit_code, words);
}

TEST(TranslateErrors, Usage) {
  ExpectError(Invoke({"a", "--file=b"}), 2, {"both texts and --file"});
  ExpectError(Invoke({"a", "--beams=0"}), 2, {"--beams", "'0'"});
  ExpectError(Invoke({"a", "--beams=2", "--temperature=1"}), 2,
              {"--temperature"});
  ExpectError(Invoke({"a", "--n_best=2", "--beams=2"}), 2, {"add --json"});
  ExpectError(Invoke({"a", "--n_best=2", "--json"}), 2,
              {"--n_best", "at most --beams, which is 1"});
  ExpectError(Invoke({"a", "--beams=2", "--length_penalty=99"}), 2,
              {"--length_penalty"});
  ExpectError(Invoke({"a", "--top_p=2"}), 2, {"--top_p"});
  ExpectError(Invoke({"a", "--target=AVX9"}), 2, {"--target", "'AVX9'"});
  ExpectError(Invoke({"a", "--beam=2"}), 2, {"did you mean --beams?"});
  RunOptions terminal;
  terminal.terminal = true;
  EXPECT_TRUE(
      absl::StrContains(Invoke({}, terminal).err, "no text: give some"));
}

TEST(TranslateErrors, TextsAndModels) {
  ExpectError(Invoke({"--file=none.txt"}), 1, {"none.txt", "No such file"});
  ExpectError(Invoke({"a", "--model=none.gguf"}), 1, {"none.gguf"});
  ExpectError(Invoke({"a", "--model", kLlama}), 1,
              {"expected an encoder-decoder"});
  ExpectError(Invoke({"a", "--target_language=de"}), 1, {"no languages"});
  ExpectError(Invoke({"a", "--task=none"}), 1, {"task: expected none"});
  ExpectError(Invoke({"incomprehensibilities", "--context=20"}), 1,
              {"22 tokens", "the encoder's 20 positions"});
  RunOptions full;
  full.out_file = "/dev/full";
  ExpectError(Invoke({"hello"}, full), 1, {"cannot write the output"});
  ExpectError(Invoke({"hello", "world"}, full), 1, {"cannot write the output"});
}

TEST(TranslateBehaviour, LinesAreAnsweredBeforeTheNextComes) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {}, options);
  child.Send("hello\n");
  ASSERT_TRUE(child.WaitForOut("HH EH1 L OW0\n"));
  child.Send("world\n");
  ASSERT_TRUE(child.WaitForOut("W ER1 L D\n"));
  child.Send("cat");
  child.CloseIn();
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "HH EH1 L OW0\nW ER1 L D\nK AE1 T\n");
}

TEST(TranslateBehaviour, CtrlCEndsIt) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {}, options);
  child.Send("hello\n");
  ASSERT_TRUE(child.WaitForOut("HH EH1 L OW0\n"));
  child.Signal(SIGINT);  // while it waits
  RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "translate: interrupted\n");
  // While it works: text enough for minutes.
  std::string words = "hello\n";
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&words, "incomprehensibilities", i, "\n");
  }
  const std::string file = TestFolder("interrupt") + "/words.txt";
  WriteFile(file, words);
  Child busy(kProgram, {"--batch=1", "--file", file}, {});
  ASSERT_TRUE(busy.WaitForOut("HH EH1 L OW0\n"));
  busy.Signal(SIGINT);
  result = busy.Finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "translate: interrupted\n");
}

TEST(TranslateBehaviour, AClosedPipeIsNoError) {
  RunOptions options;
  options.keep_in_open = true;
  Child child(kProgram, {}, options);
  child.CloseOut();
  child.Send("hello\nworld\n");
  child.CloseIn();
  const RunResult result = child.Finish();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace lanewise
