// Beam search through the public API.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kModel[] = "tests/data/models/llama";

GenerateRequest Beams(const std::string& text, int32_t beams) {
  GenerateRequest request = Prompt(text);
  request.beams.num_beams = request.beams.num_return_sequences = beams;
  return request;
}

TEST(Engine, BeamsGiveTheBestHypothesesInOrder) {
  const auto engine = LoadEngine(kModel);
  std::vector<std::string> shown;
  GenerateCallbacks callbacks;
  callbacks.on_text = [&](absl::string_view text) {
    shown.emplace_back(text);
    return true;
  };
  const auto result = engine->Generate(Beams("The quick brown", 4), callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->hypotheses.size(), 4u);
  EXPECT_THAT(shown, ElementsAre(result->text));
  EXPECT_EQ(result->text, result->hypotheses[0].text);
  EXPECT_EQ(result->ids, result->hypotheses[0].ids);
  for (size_t i = 0; i < 4; ++i) {
    const Hypothesis& hypothesis = result->hypotheses[i];
    EXPECT_EQ(hypothesis.text, engine->Decode(hypothesis.ids));
    EXPECT_NEAR(hypothesis.score,
                hypothesis.log_probability / hypothesis.ids.size(), 1e-12);
    if (i == 0) continue;
    EXPECT_LE(hypothesis.score, result->hypotheses[i - 1].score);
    EXPECT_NE(hypothesis.ids, result->hypotheses[i - 1].ids);
  }
  // At least as probable as what greedy decoding finds.
  const auto greedy = engine->Generate(Prompt("The quick brown"), {});
  ASSERT_TRUE(greedy.ok());
  double sum = 0;
  for (const double value : greedy->log_probabilities) sum += value;
  EXPECT_GE(result->hypotheses[0].log_probability, sum - 1e-5);
}

TEST(Engine, BeamsAreTheSameWhateverTheScheduleAndTheCache) {
  std::string hash;
  const GenerateRequest request = Beams("It wasn't the first 42 times", 5);
  for (const size_t threads : {1, 3}) {
    for (const size_t chunk : {1, 4, 512}) {
      EngineOptions options;
      options.threads = threads;
      options.prefill_chunk = chunk;
      const auto engine = LoadEngine(kModel, options);
      const auto session = *engine->NewSession();
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto result = session->Generate(request, {});
        ASSERT_TRUE(result.ok()) << result.status();
        if (hash.empty()) hash = result->logits_hash;
        EXPECT_EQ(result->logits_hash, hash);
        EXPECT_EQ(result->cached_tokens,
                  repeat == 0 ? 0 : result->prompt_tokens - 1);
      }
      // The session's own cache is what it was before the beams.
      const auto after = session->Generate(Prompt(request.prompt), {});
      const auto fresh = engine->Generate(Prompt(request.prompt), {});
      ASSERT_TRUE(after.ok() && fresh.ok());
      EXPECT_EQ(after->logits_hash, fresh->logits_hash);
    }
  }
}

TEST(Engine, BeamsEndAtTheContextAndWhenCancelled) {
  EngineOptions options;
  options.context_length = 16;
  const auto engine = LoadEngine(kModel, options);
  GenerateRequest request = Beams("", 3);
  request.prompt_ids.assign(10, 7);
  request.max_tokens = 1000;
  const auto full = engine->Generate(request, {});
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->ids.size(), 6u);
  EXPECT_EQ(full->finish_reason, FinishReason::kLength);
  request.max_tokens = 0;
  const auto none = engine->Generate(request, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->ids.empty());
  request.max_tokens = 6;
  for (int last = 0; last < 4; ++last) {
    GenerateCallbacks callbacks;
    int asked = 0;
    callbacks.should_cancel = [&] { return asked++ == last; };
    const auto cancelled = engine->Generate(request, callbacks);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_EQ(cancelled->finish_reason, FinishReason::kCancelled);
    EXPECT_TRUE(cancelled->hypotheses.empty());
    EXPECT_EQ(asked, last + 1);
  }
}

TEST(Engine, BeamOptionsThatCannotBeServedSayWhy) {
  const auto engine = LoadEngine(kModel);
  const auto message = [&](const GenerateRequest& request) {
    const auto result = engine->Generate(request, {});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_THAT(message(Beams("x", 0)), HasSubstr("num_beams"));
  EXPECT_THAT(message(Beams("x", 5000)), HasSubstr("num_beams"));
  GenerateRequest request = Beams("x", 1);
  request.beams.num_return_sequences = 2;
  EXPECT_THAT(message(request), HasSubstr("num_return_sequences"));
  request = Beams("x", 2);
  request.stop = {"."};
  EXPECT_THAT(message(request), HasSubstr("stop"));
  request = Beams("x", 2);
  request.sampling.temperature = 0.7;
  EXPECT_THAT(message(request), HasSubstr("temperature"));
}

}  // namespace
}  // namespace lanewise
