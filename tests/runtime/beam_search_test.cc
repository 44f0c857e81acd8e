#include "runtime/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/beam_search_reference.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Results = std::vector<std::vector<BeamHypothesis>>;

// Owns its prompts.
struct TestRequest : BeamSearchRequest {
  std::shared_ptr<const std::vector<Ids>> owned;
};

TestRequest Request(const ToyModel& model, std::vector<Ids> prompts,
                    int num_beams, size_t max_new_tokens) {
  TestRequest request;
  request.owned = std::make_shared<const std::vector<Ids>>(std::move(prompts));
  request.prompts.assign(request.owned->begin(), request.owned->end());
  request.beams.num_beams = num_beams;
  request.beams.num_return_sequences = num_beams;
  request.vocab_size = model.vocab_size;
  request.eos_ids = {2};
  request.max_new_tokens = max_new_tokens;
  return request;
}

absl::StatusOr<Results> SearchToy(const ToyModel& model,
                                  const BeamSearchRequest& request,
                                  const Target& target = Target::Best(),
                                  size_t threads = 1) {
  ToyStepper stepper(model, request.prompts);
  return BeamSearch(*MakeContext(target, threads), request, stepper);
}

// `tolerance`: relative, for a score is a sum of log-probabilities in f32.
void ExpectEqual(const std::vector<BeamHypothesis>& found,
                 const std::vector<BeamHypothesis>& expected,
                 double tolerance) {
  const auto expect_near = [tolerance](double x, double y) {
    EXPECT_NEAR(x, y, tolerance * std::max(1.0, std::fabs(y)));
  };
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].ids, expected[i].ids);
    EXPECT_EQ(found[i].ended, expected[i].ended);
    expect_near(found[i].score, expected[i].score);
    expect_near(found[i].log_probability, expected[i].log_probability);
  }
}

// Every sequence there is, scored: the n-best list of an unbounded beam.
void Enumerate(const ToyModel& model, const BeamSearchRequest& request,
               Ids history, double sum, std::vector<BeamHypothesis>* out) {
  const size_t prompt = request.prompts[0].size();
  const size_t length = history.size() - prompt + 1;
  const std::vector<double> log_probs = model.LogProbs(history);
  for (size_t id = 0; id < model.vocab_size; ++id) {
    history.push_back(static_cast<int32_t>(id));
    const double total = sum + log_probs[id];
    if (id == 2 || length == request.max_new_tokens) {
      const double score =
          total / std::pow(length, request.beams.length_penalty);
      out->push_back(
          {{history.begin() + prompt, history.end()}, total, score, id == 2});
    } else {
      Enumerate(model, request, history, total, out);
    }
    history.pop_back();
  }
}

TEST(BeamSearch, S11WideBeamsEqualBruteForce) {
  ForEachTarget([](const Target& target) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const ToyModel model{3, seed};
      for (const double penalty : {1.0, 0.6, 0.0, 2.0, -0.5}) {
        SCOPED_TRACE(testing::Message() << seed << ' ' << penalty);
        // 1 + 2 + 4 + 8 sequences end before the fifth token, 48 have five.
        TestRequest request = Request(model, {{0, 1}}, 80, 5);
        request.beams.length_penalty = penalty;
        std::vector<BeamHypothesis> expected;
        Enumerate(model, request, {0, 1}, 0.0, &expected);
        ASSERT_EQ(expected.size(), 63u);
        std::sort(expected.begin(), expected.end(),
                  [](const BeamHypothesis& a, const BeamHypothesis& b) {
                    return a.score > b.score;
                  });
        const auto found = SearchToy(model, request, target);
        ASSERT_TRUE(found.ok()) << found.status();
        ExpectEqual((*found)[0], expected, 1e-6);
      }
    }
  });
}

TEST(BeamSearch, S8EqualsTheReferenceAlgorithm) {
  size_t ended = 0, cut = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    TestRandom random(seed);
    const auto below = [&random](uint64_t n) {
      return static_cast<int>(random.Bits() % n);
    };
    const int beams = 2 + below(4);
    const std::vector<int32_t> eos =
        below(2) != 0 ? std::vector<int32_t>{2} : std::vector<int32_t>{2, 5};
    // Enough tokens that the reference never has to take a dead beam.
    const ToyModel model{beams * (1 + eos.size()) + 3 + below(20), seed, 2.5f};
    TestRequest request = Request(model, {{1, 4, 3}}, beams, 1 + below(12));
    request.eos_ids = eos;
    constexpr double kPenalties[] = {1.0, 0.6, 2.0, 0.0, -1.0};
    request.beams.length_penalty = kPenalties[below(5)];
    request.beams.early_stopping = static_cast<EarlyStopping>(below(3));
    if (below(3) == 0) request.processors.repetition_penalty = 1.3;
    if (below(3) == 0) request.processors.no_repeat_ngram = 2;
    if (below(3) == 0) request.processors.min_new_tokens = 3;
    if (below(4) == 0) request.processors.bad_words = {{4}, {1, 3}};
    if (below(4) == 0 && request.max_new_tokens > 1) {
      request.processors.forced_last_id = 2;
    }
    SCOPED_TRACE(seed);
    const auto found = SearchToy(model, request);
    ASSERT_TRUE(found.ok()) << found.status();
    ExpectEqual((*found)[0], ReferenceBeamSearch(model, request), 1e-6);
    for (const BeamHypothesis& hypothesis : (*found)[0]) {
      ++(hypothesis.ended ? ended : cut);
    }
  }
  EXPECT_GT(ended, 100u);  // both ways to finish are exercised
  EXPECT_GT(cut, 100u);
}

TEST(BeamSearch, InputsDoNotInfluenceEachOther) {
  const ToyModel model{11, 5, 2.5f};
  std::vector<Ids> prompts;
  for (int32_t i = 0; i < 7; ++i) prompts.push_back(Ids(1 + i % 3, i));
  TestRequest all = Request(model, prompts, 3, 9);
  all.processors.no_repeat_ngram = 2;
  const auto together = SearchToy(model, all, Target::Best(), /*threads=*/3);
  ASSERT_TRUE(together.ok()) << together.status();
  ASSERT_EQ(together->size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    BeamSearchRequest one = all;
    one.prompts = {prompts[i]};
    const auto alone = SearchToy(model, one);
    ASSERT_TRUE(alone.ok()) << alone.status();
    SCOPED_TRACE(i);
    ExpectEqual((*together)[i], (*alone)[0], /*tolerance=*/0.0);
  }
}

TEST(BeamSearch, ResultsAreTheSameBitsOnAllTargetsWithFma) {
  const ToyModel model{300, 9};
  const TestRequest request = Request(model, {{7}, {8, 9}}, 4, 12);
  const auto expected = SearchToy(model, request, Target::Best());
  ASSERT_TRUE(expected.ok());
  ForEachTarget([&](const Target& target) {
    const auto found = SearchToy(model, request, target, 2);
    ASSERT_TRUE(found.ok());
    for (size_t i = 0; i < 2; ++i) {
      ExpectEqual((*found)[i], (*expected)[i],
                  target.has_fma() == Target::Best().has_fma() ? 0.0 : 1e-6);
    }
  });
}

TEST(BeamSearch, OneBeamIsGreedyDecoding) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ToyModel model{9, seed, 2.0f};
    TestRequest request = Request(model, {{3, 4}}, 1, 10);
    request.processors.repetition_penalty = seed % 2 == 0 ? 1.0 : 1.2;
    Ids history = {3, 4};
    while (history.size() < 12 &&
           (history.size() == 2 || history.back() != 2)) {
      const std::vector<float> scores =
          model.Processed(history, 2, false, request.processors, {2});
      history.push_back(static_cast<int32_t>(
          std::max_element(scores.begin(), scores.end()) - scores.begin()));
    }
    const auto found = SearchToy(model, request);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ((*found)[0].size(), 1u);
    EXPECT_EQ((*found)[0][0].ids, Ids(history.begin() + 2, history.end()));
  }
}

// A model by hand: probabilities of ids 0, 1, 2 (the end) after each prefix.
ToyModel S10Model() {
  ToyModel model{3, 0};
  model.table = {{{0}, {0.45, 0.05, 0.50}},        // ends at once: likeliest
                 {{0, 0}, {0.90, 0.05, 0.05}},     // or goes on, and gains
                 {{0, 0, 0}, {0.90, 0.05, 0.05}},  // per token
                 {{0, 0, 0, 0}, {0.02, 0.02, 0.96}}};
  return model;
}

TEST(BeamSearch, S10GoesOnWhileALongerOneCanWin) {
  const ToyModel model = S10Model();
  TestRequest request = Request(model, {{0}}, 2, 8);
  const auto best = [&](EarlyStopping early, double penalty) {
    request.beams.early_stopping = early;
    request.beams.length_penalty = penalty;
    return std::move(SearchToy(model, request)).value()[0][0].ids;
  };
  // ln 0.5 = -0.69 ends first; ln(0.45 · 0.9 · 0.9 · 0.96) / 4 = -0.26 wins.
  for (const EarlyStopping early :
       {EarlyStopping::kNo, EarlyStopping::kNever}) {
    EXPECT_THAT(best(early, 1.0), ElementsAre(0, 0, 0, 2));
    EXPECT_THAT(best(early, 0.0), ElementsAre(2));
  }
}

TEST(BeamSearch, S10EarlyStoppingDecidesWhenToStop) {
  ToyModel model = S10Model();
  model.table[1].second = {0.1, 0.1, 0.8};  // two have ended after two steps,
  model.table.push_back({{0, 1}, {0.98, 0.01, 0.01}});
  model.otherwise = {0.98, 0.01, 0.01};  // the others become certain
  TestRequest request = Request(model, {{0}}, 2, 40);
  const auto run = [&](EarlyStopping early) {
    request.beams.early_stopping = early;
    ToyStepper stepper(model, request.prompts);
    const auto found =
        BeamSearch(*MakeContext(Target::Best()), request, stepper);
    EXPECT_TRUE(found.ok());
    return std::make_pair(stepper.calls(), (*found)[0][0].ids);
  };
  EXPECT_EQ(run(EarlyStopping::kYes).first, 2u);
  const auto no = run(EarlyStopping::kNo);
  EXPECT_THAT(no.second, ElementsAre(0, 2));
  EXPECT_EQ(no.first, 2u);
  // A chain of forty at 0.98 is better per token than what has ended.
  const auto never = run(EarlyStopping::kNever);
  EXPECT_EQ(never.first, 40u);
  EXPECT_EQ(never.second.size(), 40u);
}

TEST(BeamSearch, AnEndBelowTheFirstBeamsDoesNotCount) {
  ToyModel model{4, 0};
  model.otherwise = {0.4, 0.35, 0.15, 0.1};  // the end ranks third
  TestRequest request = Request(model, {{0}}, 2, 3);
  request.beams.length_penalty = 0.0;  // ln 0.15 alone would win
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0][0].ids, ElementsAre(0, 0, 0));
  EXPECT_THAT((*found)[0][1].ids, ElementsAre(0, 0, 1));
  EXPECT_FALSE((*found)[0][0].ended);
}

TEST(BeamSearch, TiesGoToTheBetterBeamThenTheLowerId) {
  ToyModel model{4, 0};
  model.otherwise = {0.25, 0.25, 0.25, 0.25};
  TestRequest request = Request(model, {{0}}, 3, 2);
  request.eos_ids = {};
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0][0].ids, ElementsAre(0, 0));
  EXPECT_THAT((*found)[0][1].ids, ElementsAre(0, 1));
  EXPECT_THAT((*found)[0][2].ids, ElementsAre(0, 2));
}

TEST(BeamSearch, FewerTokensThanBeamsGiveFewerHypotheses) {
  ToyModel model{3, 0};
  model.otherwise = {0.5, 0.3, 0.2};
  const TestRequest request = Request(model, {{0}}, 8, 1);
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ((*found)[0].size(), 3u);
  EXPECT_THAT((*found)[0][2].ids, ElementsAre(2));
  EXPECT_NEAR((*found)[0][2].score, std::log(0.2), 1e-6);
}

TEST(BeamSearch, EndTokensOutsideTheVocabularyNeverCome) {
  const ToyModel model{6, 3};
  TestRequest request = Request(model, {{0}}, 3, 4);
  request.eos_ids = {2, -1, 6, INT32_MAX, 2};
  const auto found = SearchToy(model, request);
  request.eos_ids = {2};
  const auto expected = SearchToy(model, request);
  ASSERT_TRUE(found.ok() && expected.ok());
  ExpectEqual((*found)[0], (*expected)[0], 0.0);
}

TEST(BeamSearch, FirstTokenOfAnEncoderDecoderCanBeForced) {
  const ToyModel model{9, 4};
  TestRequest request = Request(model, {{8}}, 3, 4);
  request.processors.forced_first_id = 7;
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ((*found)[0].size(), 3u);
  for (const BeamHypothesis& hypothesis : (*found)[0]) {
    EXPECT_EQ(hypothesis.ids[0], 7);
  }
}

TEST(BeamSearch, NothingToDoForNoInput) {
  const ToyModel model{9, 4};
  const auto found = SearchToy(model, Request(model, {}, 3, 4));
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
}

TEST(BeamSearch, BansThatLeaveNothingAreAnError) {
  const ToyModel model{3, 1};
  TestRequest request = Request(model, {{0}, {1}}, 2, 4);
  request.processors.suppressed_ids = {0, 1, 2};
  const auto found = SearchToy(model, request);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("input 0, step 0"));
}

// Beams that cannot go on end the search; what has finished is the result.
TEST(BeamSearch, BansThatStopAllBeamsKeepWhatHasFinished) {
  ToyModel model{3, 0};
  model.otherwise = {0.2, 0.2, 0.6};
  TestRequest request = Request(model, {{2}}, 4, 9);
  request.processors.bad_words = {{0, 0}, {0, 1}, {0, 2},
                                  {1, 0}, {1, 1}, {1, 2}};
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ((*found)[0].size(), 1u);
  EXPECT_THAT((*found)[0][0].ids, ElementsAre(2));
}

TEST(BeamSearch, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    ToyModel model{5, 2};
    model.bad_length = 4;
    model.bad_value = bad;
    TestRequest request = Request(model, {{0}, {1, 3}}, 2, 6);
    request.eos_ids = {};
    const auto found = SearchToy(model, request);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(found.status().message()),
                HasSubstr("input 1, step 2"));
  }
}

TEST(BeamSearch, HugeLogitsGiveFiniteScores) {
  ToyModel model{4, 0};
  model.logits = {3e38f, -3e38f, -3e38f, 0.0f};
  const TestRequest request = Request(model, {{0}}, 4, 3);
  const auto found = SearchToy(model, request);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ((*found)[0].size(), 4u);
  EXPECT_EQ((*found)[0][0].score, 0.0);
  for (const BeamHypothesis& hypothesis : (*found)[0]) {
    EXPECT_TRUE(std::isfinite(hypothesis.score));
  }
}

class BadStepper : public BeamStepper {
 public:
  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep>) override {
    if (fail) return absl::CancelledError("stop");
    return absl::MakeConstSpan(logits);
  }
  bool fail = false;
  std::vector<float> logits;
};

TEST(BeamSearch, ErrorsOfTheStepperComeBack) {
  const ToyModel model{4, 0};
  const TestRequest request = Request(model, {{0}}, 2, 3);
  BadStepper stepper;
  const auto context = MakeContext(Target::Best());
  EXPECT_EQ(BeamSearch(*context, request, stepper).status().code(),
            absl::StatusCode::kInvalidArgument);
  stepper.fail = true;
  EXPECT_EQ(BeamSearch(*context, request, stepper).status().code(),
            absl::StatusCode::kCancelled);
}

void ExpectRefused(const BeamSearchRequest& request, const std::string& text) {
  const auto found = SearchToy(ToyModel{5, 1}, request);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr(text));
}

TEST(BeamSearch, OptionsOutOfRangeAreRefused) {
  const ToyModel model{5, 1};
  const std::vector<Ids> prompts = {{0}};
  const TestRequest good = Request(model, prompts, 3, 4);
  for (const int32_t bad : {0, -1, 1025, INT32_MAX, INT32_MIN}) {
    BeamSearchRequest request = good;
    request.beams.num_beams = bad;
    ExpectRefused(request, "num_beams: expected 1 to 1024");
  }
  for (const int32_t bad : {0, -1, 4}) {
    BeamSearchRequest request = good;
    request.beams.num_return_sequences = bad;
    ExpectRefused(request, "num_return_sequences: expected 1 to num_beams (3)");
  }
  for (const double bad : {16.1, -17.0, double{INFINITY}, double{NAN}}) {
    BeamSearchRequest request = good;
    request.beams.length_penalty = bad;
    ExpectRefused(request, "length_penalty: expected -16 to 16");
  }
  BeamSearchRequest request = good;
  request.beams.early_stopping = static_cast<EarlyStopping>(9);
  ExpectRefused(request, "early_stopping");
  request = good;
  request.processors.temperature = 0.7;
  ExpectRefused(request, "temperature: expected 0");
  request = good;
  request.processors.repetition_penalty = -1;
  ExpectRefused(request, "repetition_penalty");
  request = good;
  request.max_new_tokens = 0;
  ExpectRefused(request, "max_new_tokens");
  request = good;
  request.vocab_size = 0;
  ExpectRefused(request, "vocab_size");
  request = good;
  request.prompts.push_back({});
  const auto found = SearchToy(ToyModel{5, 1}, request);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("prompts[1]"));
}

}  // namespace
}  // namespace lanewise
