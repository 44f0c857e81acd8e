// Beam search of the program `generate`.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/generate_no_model";
constexpr char kPrompt[] = "The quick brown fox";
using Arguments = std::vector<std::string>;

RunResult Invoke(const Arguments& more, const RunOptions& options = {}) {
  Arguments arguments = {"--model", kLlama, "--raw"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(kProgram, arguments, options);
}

nlohmann::json InvokeJson(Arguments more) {
  more.insert(more.end(), {"--json", "--max_tokens=12", "--prompt", kPrompt});
  const RunResult result = Invoke(more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return Json(result.out);
}

// What the library finds for the same request.
GenerateResult Expected(const BeamOptions& beams, int32_t no_repeat_ngram = 0) {
  const auto engine = Engine::Load(kLlama, {});
  EXPECT_TRUE(engine.ok()) << engine.status();
  GenerateRequest request;
  request.prompt = kPrompt;
  request.max_tokens = 12;
  request.beams = beams;
  request.sampling.no_repeat_ngram = no_repeat_ngram;
  const auto result = (*engine)->Generate(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : GenerateResult();
}

TEST(GenerateBeams, PrintsTheBestTextAndListsAll) {
  BeamOptions beams;
  beams.num_beams = beams.num_return_sequences = 4;
  const GenerateResult expected = Expected(beams);
  ASSERT_EQ(expected.hypotheses.size(), 4u);
  const auto json = InvokeJson({"--beams=4", "--n_best=4"});
  EXPECT_EQ(json["text"], expected.text);
  EXPECT_EQ(json["ids"], expected.ids);
  EXPECT_EQ(json["beams"], 4);
  ASSERT_EQ(json["hypotheses"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const auto& found = json["hypotheses"][i];
    const Hypothesis& wanted = expected.hypotheses[i];
    EXPECT_EQ(found["text"], wanted.text);
    EXPECT_EQ(found["ids"], wanted.ids);
    EXPECT_EQ(found["log_probability"], wanted.log_probability);
    EXPECT_EQ(found["score"], wanted.score);
    EXPECT_EQ(found["finish_reason"], "length");
  }
  EXPECT_EQ(json["logits_hash"].get<std::string>().size(), 64u);
  const RunResult text =
      Invoke({"--beams=4", "--max_tokens=12", "--prompt", kPrompt, "--stats"});
  EXPECT_EQ(text.out, expected.text + "\n");
  EXPECT_TRUE(absl::StrContains(text.err, "tokens/s"));
}

TEST(GenerateBeams, OneIsGreedyDecoding) {
  const auto json = InvokeJson({"--beams=1"});
  EXPECT_EQ(json["ids"], InvokeJson({})["ids"]);
  EXPECT_FALSE(json.contains("hypotheses"));
}

TEST(GenerateBeams, S8EveryFlagReachesTheSearch) {
  BeamOptions beams;
  beams.num_beams = 3;
  beams.num_return_sequences = 2;
  beams.length_penalty = -0.5;
  beams.early_stopping = EarlyStopping::kYes;
  const GenerateResult expected = Expected(beams, 2);
  const auto json =
      InvokeJson({"--beams=3", "--n-best=2", "--length-penalty=-0.5",
                  "--early-stopping=yes", "--no-repeat-ngram=2"});
  ASSERT_EQ(json["hypotheses"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto& found = json["hypotheses"][i];
    EXPECT_EQ(found["ids"], expected.hypotheses[i].ids);
    EXPECT_EQ(found["score"], expected.hypotheses[i].score);
    EXPECT_NEAR(found["score"].get<double>(),
                found["log_probability"].get<double>() *
                    std::sqrt(static_cast<double>(found["ids"].size())),
                1e-9);
  }
  EXPECT_EQ(InvokeJson({"--beams=3", "--early_stopping=never"})["text"],
            InvokeJson({"--beams=3", "--early_stopping=no"})["text"]);
}

TEST(GenerateBeams, ContradictionsAreUsageErrors) {
  const auto expect = [](Arguments more, const Arguments& words) {
    more.push_back("--prompt=a");
    const RunResult result = Invoke(more);
    SCOPED_TRACE(result.err);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1);
    for (const std::string& word : words) {
      EXPECT_TRUE(absl::StrContains(result.err, word)) << word;
    }
  };
  expect({"--beams=0"}, {"--beams", "'0'"});
  expect({"--beams=2000"}, {"--beams", "1024"});
  expect({"--beams=4", "--temperature=0.7"}, {"--beams", "--temperature"});
  expect({"--beams=4", "--top_p=0.9"}, {"--beams", "--top_p"});
  expect({"--beams=4", "--stop=x"}, {"--beams", "--stop"});
  expect({"--beams=4", "--n_best=5", "--json"}, {"--n_best", "4", "5"});
  expect({"--beams=4", "--n_best=2"}, {"--n_best", "--json"});
  expect({"--beams=4", "--length_penalty=17"}, {"--length_penalty", "17"});
  expect({"--beams=4", "--length_penalty=nan"}, {"--length_penalty", "nan"});
  expect({"--beams=4", "--early_stopping=maybe"}, {"--early_stopping", "yes"});
  for (const char* flag :
       {"--n_best=2", "--length_penalty=2", "--early_stopping=yes"}) {
    expect({flag, "--json"}, {"add --beams"});
  }
}

TEST(GenerateBeams, ChatHasNone) {
  RunOptions terminal;
  terminal.terminal = true;
  const RunResult result =
      RunProgram(kProgram, {"--model", kLlamaGguf, "--beams=2"}, terminal);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(absl::StrContains(result.err, "--beams is for one message"))
      << result.err;
}

TEST(GenerateBeams, HelpNamesTheFlags) {
  const RunResult result = RunProgram(kProgram, {"--help"});
  for (const char* flag :
       {"beams", "length_penalty", "early_stopping", "n_best"}) {
    EXPECT_TRUE(absl::StrContains(result.out, absl::StrCat("  --", flag)))
        << flag;
  }
}

}  // namespace
}  // namespace lanewise
