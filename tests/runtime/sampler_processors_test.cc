#include "runtime/sampler_processors.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"

namespace lanewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Scores = std::vector<float>;
using Ids = std::vector<int32_t>;

struct Place {
  Ids ids = {};
  size_t prompt_length = 0;
  bool last = false;
};

Scores Applied(const SamplingOptions& options, Scores scores,
               const Place& place = {}, const Ids& eos_ids = {}) {
  const auto processors =
      LogitsProcessors::Create(options, scores.size(), eos_ids);
  EXPECT_TRUE(processors.ok()) << processors.status();
  const TokenHistory history{place.ids, place.prompt_length, place.last};
  IdCounts counts(scores.size());
  Scores once = scores;
  processors->Apply(history, absl::MakeSpan(once), counts);
  if (processors->NothingToDo(history)) {
    EXPECT_EQ(once, scores);
  }
  // The scratch is as it was: a second use gives the same.
  processors->Apply(history, absl::MakeSpan(scores), counts);
  EXPECT_EQ(once, scores);
  return once;
}

TEST(LogitsProcessors, DefaultsChangeNothing) {
  EXPECT_EQ(Applied({}, {1, -2, 3}, {{0, 1, 1}, 1}), (Scores{1, -2, 3}));
  const auto processors = LogitsProcessors::Create({}, 3, {2});
  ASSERT_TRUE(processors.ok());
  EXPECT_TRUE(processors->NothingToDo({}));
}

TEST(LogitsProcessors, S7RepetitionPenaltyCountsThePromptOnce) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  // 0 in the prompt twice, 1 generated, 2 nowhere; 3 has a negative score.
  EXPECT_EQ(Applied(options, {4, 4, 4, -4}, {{0, 0, 3, 1}, 3}),
            (Scores{2, 2, 4, -8}));
}

TEST(LogitsProcessors, IdsOutsideTheVocabularyCountForNothing) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  options.presence_penalty = 1;
  options.no_repeat_ngram = 1;
  EXPECT_EQ(Applied(options, {4, 4}, {{-1, 2, 1 << 30, 1}, 0}),
            (Scores{4, -kInfinity}));
}

TEST(LogitsProcessors, PresenceAndFrequencyCountGeneratedOnly) {
  SamplingOptions options;
  options.presence_penalty = 0.5;
  options.frequency_penalty = 0.25;
  EXPECT_EQ(Applied(options, {1, 1, 1, 1}, {{0, 1, 1, 2, 1}, 2}),
            (Scores{1, 0, 0.25, 1}));
  options.presence_penalty = 0;
  options.frequency_penalty = -1;
  EXPECT_EQ(Applied(options, {1, 1}, {{1, 1, 1}, 0}), (Scores{1, 4}));
}

TEST(LogitsProcessors, NgramsAreBannedAsASlowSearchSays) {
  TestBits random(1);
  for (int round = 0; round < 500; ++round) {
    Ids ids(random.Below(20));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(3));
    const size_t n = 1 + random.Below(5);
    SamplingOptions options;
    options.no_repeat_ngram = static_cast<int32_t>(n);
    const Scores found = Applied(options, {1, 1, 1}, {ids, ids.size() / 2});
    for (int32_t next = 0; next < 3; ++next) {
      Ids with = ids;
      with.push_back(next);
      // Does the n-gram at the end occur earlier?
      bool occurs = false;
      for (size_t i = 0; i + n < with.size(); ++i) {
        occurs |= std::equal(with.end() - static_cast<ptrdiff_t>(n), with.end(),
                             with.begin() + static_cast<ptrdiff_t>(i));
      }
      EXPECT_EQ(found[next], occurs ? -kInfinity : 1.0f);
    }
  }
}

TEST(LogitsProcessors, BadWordsAndSuppressedIds) {
  SamplingOptions options;
  options.suppressed_ids = {0};
  options.begin_suppressed_ids = {1};
  options.bad_words = {{2}, {7, 8, 3}, {8, 4}};
  const float no = -kInfinity;
  const Scores ones(9, 1.0f);
  // First step: {7, 8} and {8} precede.
  EXPECT_EQ(Applied(options, ones, {{7, 8}, 2}),
            (Scores{no, no, no, no, no, 1, 1, 1, 1}));
  EXPECT_EQ(Applied(options, ones, {{6, 8}, 1}),
            (Scores{no, 1, no, 1, no, 1, 1, 1, 1}));
  EXPECT_EQ(Applied(options, ones, {{8, 7}, 1}),
            (Scores{no, 1, no, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Applied(options, ones, {}), (Scores{no, no, no, 1, 1, 1, 1, 1, 1}));
}

TEST(LogitsProcessors, EndIsForbiddenForTheMinimumLength) {
  SamplingOptions options;
  options.min_new_tokens = 2;
  for (size_t generated = 0; generated < 4; ++generated) {
    Ids ids(3 + generated, 0);
    const Scores found = Applied(options, {1, 1, 1}, {ids, 3}, {1, 2, 77, -1});
    const float end = generated < 2 ? -kInfinity : 1.0f;
    EXPECT_EQ(found, (Scores{1, end, end})) << generated;
  }
}

TEST(LogitsProcessors, ForcedIds) {
  SamplingOptions options;
  options.forced_first_id = 1;
  options.forced_last_id = 2;
  options.suppressed_ids = {1, 2};
  const float no = -kInfinity;
  EXPECT_EQ(Applied(options, {5, 5, 5}, {{0}, 1}), (Scores{no, 0, no}));
  EXPECT_EQ(Applied(options, {5, 5, 5}, {{0, 1}, 1}), (Scores{5, no, no}));
  EXPECT_EQ(Applied(options, {5, 5, 5}, {{0, 1}, 1, true}),
            (Scores{no, no, 0}));
  EXPECT_EQ(Applied(options, {5, 5, 5}, {{0}, 1, true}), (Scores{no, no, 0}));
}

TEST(LogitsProcessors, OrderIsPenaltyThenBanThenBias) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  options.presence_penalty = 3;
  options.logit_bias = {{0, 10}, {1, 1}};
  options.suppressed_ids = {1};
  // 0: 4 / 2 + 10 - 3. A bias does not bring a forbidden token back.
  EXPECT_EQ(Applied(options, {4, 4, 4}, {{0}, 0}), (Scores{9, -kInfinity, 4}));
}

TEST(LogitsProcessors, FiniteScoresStayFinite) {
  const float largest = std::numeric_limits<float>::max();
  SamplingOptions options;
  options.repetition_penalty = 1e300;
  options.logit_bias = {{1, 1e308}, {2, -1e308}};
  Scores found = Applied(options, {-1, largest, 1, 1}, {{0, 3}, 0});
  EXPECT_EQ(found, (Scores{-largest, largest, -largest, 0}));
  options = {};
  options.repetition_penalty = 1e-300;
  options.frequency_penalty = -1e308;
  found = Applied(options, {1, -1, 0}, {{0, 1, 2}, 0});
  EXPECT_EQ(found, (Scores{largest, largest, largest}));
}

TEST(LogitsProcessors, ForbiddenScoresStayForbidden) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  options.presence_penalty = -5;
  options.logit_bias = {{0, 5}};
  EXPECT_EQ(Applied(options, {-kInfinity, 1}, {{0, 0}, 0}),
            (Scores{-kInfinity, 1}));
}

TEST(LogitsProcessors, RefusesIdsOutsideTheVocabulary) {
  const auto message = [](const SamplingOptions& options) {
    const auto processors = LogitsProcessors::Create(options, 10, {});
    EXPECT_EQ(processors.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(processors.status().message());
  };
  const std::string rest =
      ": expected an id of the vocabulary, less than 10, found 10";
  SamplingOptions options;
  options.logit_bias = {{9, 1}, {10, 1}};
  EXPECT_EQ(message(options), "logit_bias[1].id" + rest);
  options = {};
  options.suppressed_ids = {10};
  EXPECT_EQ(message(options), "suppressed_ids[0]" + rest);
  options = {};
  options.begin_suppressed_ids = {10};
  EXPECT_EQ(message(options), "begin_suppressed_ids[0]" + rest);
  options = {};
  options.bad_words = {{1, 10}};
  EXPECT_EQ(message(options), "bad_words[0][1]" + rest);
  options = {};
  options.forced_first_id = 10;
  EXPECT_EQ(message(options), "forced_first_id" + rest);
  options = {};
  options.forced_last_id = 10;
  EXPECT_EQ(message(options), "forced_last_id" + rest);
  options = {};
  options.top_p = 2;
  EXPECT_EQ(message(options), "top_p: expected 0 to 1, found 2");
  EXPECT_FALSE(LogitsProcessors::Create({}, 0, {}).ok());
  EXPECT_FALSE(LogitsProcessors::Create({}, size_t{1} << 31, {}).ok());
}

}  // namespace
}  // namespace lanewise
