#include "runtime/sampler.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"
#include "tests/simd/kernel_test.h"

namespace {
std::atomic<size_t> allocations{0};
}  // namespace

// Counts for the test that a step allocates nothing. Not inline: where one half
// of a pair is, gcc 12 takes the other for a mismatch.
__attribute__((noinline)) void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  std::abort();
}
__attribute__((noinline)) void* operator new(size_t bytes,
                                             const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
  std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace lanewise {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<int32_t>;

Sampler Make(SamplingOptions options, size_t vocab_size, Ids eos_ids = {},
             uint64_t stream = 0) {
  if (!options.seed.has_value()) options.seed = 1;
  return Sampler::Create(options, {vocab_size, eos_ids}, stream).value();
}

absl::StatusOr<SampledToken> StepOnce(const Sampler& sampler,
                                      const Logits& logits, const Ids& ids = {},
                                      size_t prompt_length = 0) {
  SamplerScratch scratch(logits.size());
  return sampler.Step(Target::Best(), {logits, {ids, prompt_length}}, scratch);
}

Logits RandomLogits(uint64_t seed, size_t n) {
  TestBits random(seed);
  Logits logits(n);
  for (float& x : logits) x = static_cast<float>(random.Uniform() * 8 - 4);
  return logits;
}

// `count` draws from the same logits, at steps 0, 1, …
Ids Draws(const Sampler& sampler, const Logits& logits, size_t count) {
  const Target target = Target::Best();
  SamplerScratch scratch(logits.size());
  Ids ids, drawn;
  for (size_t step = 0; step < count; ++step) {
    const auto token = sampler.Step(target, {logits, {ids, 0}}, scratch);
    EXPECT_TRUE(token.ok()) << token.status();
    drawn.push_back(token->id);
    ids.push_back(-1);  // counts as a step, not as a token
  }
  return drawn;
}

TEST(Sampler, S1TemperatureZeroTakesTheLowestIdOnTies) {
  ForEachTarget([](const Target& target) {
    const Sampler sampler = Make({}, 3);
    SamplerScratch scratch(3);
    const Logits logits = {1, 2, 2};
    const auto token = sampler.Step(target, {logits, {}}, scratch);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->id, 1);
  });
  // Filters and seeds change nothing.
  SamplingOptions options;
  options.top_p = 0.1;
  options.top_k = 7;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    EXPECT_EQ(StepOnce(Make(options, 3), {1, 2, 2})->id, 1);
  }
}

TEST(Sampler, S2RefusesOptionsBeforeAnythingRuns) {
  SamplingOptions options;
  options.temperature = -1;
  EXPECT_EQ(Sampler::Create(options, {10, {}}).status().message(),
            "temperature: expected a finite number, at least 0, found -1");
}

TEST(Sampler, S4LogProbabilityIsTheModelsOwn) {
  SamplingOptions options;
  options.repetition_penalty = 3;
  options.suppressed_ids = {2};
  options.logit_bias = {{0, 2}};
  const Logits logits = {0.5, 1, 3, 2};
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  for (const double temperature : {0.0, 0.01}) {
    options.temperature = temperature;
    const auto token = StepOnce(Make(options, 4), logits, {3, 1}, 2);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->id, 0);  // 2.5 after the bias
    EXPECT_NEAR(token->log_prob, 0.5 - std::log(sum), 1e-6);
  }
}

TEST(Sampler, S4TopLogProbsAreSortedAndTrue) {
  const Logits logits = {0, 2, 1, 2, -1};
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  const auto top = TopLogProbs(Target::Best(), logits, 3);
  ASSERT_EQ(top.size(), 3u);
  const Ids expected = {1, 3, 2};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(top[i].id, expected[i]);
    EXPECT_NEAR(top[i].log_prob, logits[expected[i]] - std::log(sum), 1e-6);
  }
  EXPECT_EQ(TopLogProbs(Target::Best(), logits, 99).size(), 5u);
  EXPECT_TRUE(TopLogProbs(Target::Best(), logits, 0).empty());
}

TEST(Sampler, S5SameSeedSameTokens) {
  SamplingOptions options;
  options.temperature = 1.2;
  options.seed = 42;
  const Logits logits = RandomLogits(3, 500);
  const Ids first = Draws(Make(options, 500), logits, 100);
  EXPECT_EQ(Draws(Make(options, 500), logits, 100), first);
  EXPECT_NE(Draws(Make(options, 500, {}, /*stream=*/1), logits, 100), first);
  options.seed = 43;
  EXPECT_NE(Draws(Make(options, 500), logits, 100), first);
}

TEST(Sampler, S5ReportedSeedReproduces) {
  SamplingOptions options;
  options.temperature = 1.5;
  const Logits logits = RandomLogits(4, 300);
  const Sampler unset = Sampler::Create(options, {300, {}}).value();
  options.seed = unset.seed();
  const Sampler set = Sampler::Create(options, {300, {}}).value();
  EXPECT_EQ(Draws(set, logits, 50), Draws(unset, logits, 50));
  EXPECT_NE(Sampler::Create({}, {300, {}})->seed(), unset.seed());
}

TEST(Sampler, S7PenaltyCountsThePrompt) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  EXPECT_EQ(StepOnce(Make(options, 2), {3, 2}, {}, 0)->id, 0);
  EXPECT_EQ(StepOnce(Make(options, 2), {3, 2}, {0}, 1)->id, 1);
  EXPECT_EQ(StepOnce(Make(options, 2), {3, 2}, {0}, 0)->id, 1);
}

TEST(Sampler, NonFiniteLogitsNameTheStep) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const double temperature : {0.0, 1.0}) {
      SamplingOptions options;
      options.temperature = temperature;
      Logits logits(100, 1.0f);
      logits[37] = bad;
      const auto token = StepOnce(Make(options, 100), logits, {1, 2, 3}, 1);
      EXPECT_EQ(token.status().code(), absl::StatusCode::kInternal);
      EXPECT_EQ(token.status().message().substr(0, 58),
                "step 2: logit of token 37: expected a finite number, found");
    }
  }
}

TEST(Sampler, NothingLeftNamesTheStep) {
  for (const double temperature : {0.0, 1.0}) {
    SamplingOptions options;
    options.temperature = temperature;
    options.suppressed_ids = {0, 1};
    const auto token = StepOnce(Make(options, 2), {1, 2}, {0}, 0);
    EXPECT_EQ(token.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(token.status().message(),
              "step 1: expected a token to choose, found all forbidden");
  }
}

TEST(Sampler, SizesThatDoNotFit) {
  const Sampler sampler = Make({}, 3);
  SamplerScratch scratch(3);
  const Logits four(4), three(3);
  const std::vector<uint64_t> words(2);
  const Target target = Target::Best();
  EXPECT_EQ(sampler.Step(target, {four, {}}, scratch).status().message(),
            "step 0: logits: expected 3 elements, found 4");
  EXPECT_EQ(
      sampler.Step(target, {three, {}, words}, scratch).status().message(),
      "step 0: allowed: expected 1 elements, found 2");
  SamplerScratch small(2);
  EXPECT_FALSE(sampler.Step(target, {three, {}}, small).ok());
  const Ids ids = {1};
  EXPECT_FALSE(sampler.Step(target, {three, {ids, 2}}, scratch).ok());
}

TEST(Sampler, AllowedTokensOnly) {
  const size_t n = 130;
  const Logits logits = RandomLogits(5, n);
  std::vector<uint64_t> allowed((n + 63) / 64);
  for (const size_t id : {3u, 64u, 129u}) {
    allowed[id / 64] |= uint64_t{1} << (id % 64);
  }
  SamplingOptions options;
  options.temperature = 2;
  SamplerScratch scratch(n);
  const auto tokens =
      Make(options, n)
          .Distribution(Target::Best(), {logits, {}, allowed}, scratch);
  ASSERT_TRUE(tokens.ok());
  ASSERT_EQ(tokens->size(), 3u);
  for (const TokenProbability& token : *tokens) {
    EXPECT_TRUE(token.id == 3 || token.id == 64 || token.id == 129);
  }
  const auto greedy =
      Make({}, n).Step(Target::Best(), {logits, {}, allowed}, scratch);
  EXPECT_EQ(greedy->id, tokens->front().id);
  EXPECT_EQ(Make({}, n)
                .Distribution(Target::Best(), {logits, {}, allowed}, scratch)
                ->size(),
            1u);
}

// Counts of many draws against what Distribution says, per kind of filter.
TEST(Sampler, DrawsFollowTheDistribution) {
  const size_t n = 40, draws = 20000;
  const Logits logits = RandomLogits(6, n);
  std::vector<SamplingOptions> kinds(5);
  for (SamplingOptions& kind : kinds) {
    kind.temperature = 1.0;
    kind.seed = 2026;
  }
  kinds[1].temperature = 3.0;
  kinds[2].top_k = 6;
  kinds[3].top_p = 0.8;
  kinds[4].typical_p = 0.5;
  for (const SamplingOptions& kind : kinds) {
    const Sampler sampler = Make(kind, n);
    SamplerScratch scratch(n);
    const auto expected =
        sampler.Distribution(Target::Best(), {logits, {}}, scratch).value();
    std::vector<double> counts(n);
    for (const int32_t id : Draws(sampler, logits, draws)) ++counts[id];
    // Cells of fewer than 10 expected draws are put together.
    double chi_square = 0, rest = 0, rest_expected = 0, sum = 0;
    int cells = 0;
    const auto cell = [&](double found, double wanted) {
      chi_square += (found - wanted) * (found - wanted) / wanted;
      ++cells;
    };
    for (const TokenProbability& token : expected) {
      const double wanted = token.probability * draws;
      sum += token.probability;
      if (wanted >= 10) {
        cell(counts[token.id], wanted);
      } else {
        rest += counts[token.id];
        rest_expected += wanted;
      }
      counts[token.id] = 0;
    }
    if (rest_expected >= 10) cell(rest, rest_expected);
    EXPECT_NEAR(sum, 1.0, 1e-6);
    for (const double count : counts) EXPECT_EQ(count, 0);  // filtered out
    // Wilson and Hilferty's approximation of the 99.99 % quantile.
    const double df = cells - 1;
    const double cube = 1 - 2 / (9 * df) + 3.719 * std::sqrt(2 / (9 * df));
    ASSERT_GE(cells, 3);
    EXPECT_LT(chi_square, df * cube * cube * cube) << cells;
  }
}

TEST(Sampler, StepsAllocateNothing) {
  const size_t n = 3000;
  SamplingOptions options;
  options.temperature = 1.1;
  options.top_k = 100;
  options.top_p = 0.95;
  options.min_p = 0.01;
  options.typical_p = 0.9;
  options.epsilon_cutoff = 1e-4;
  options.repetition_penalty = 1.1;
  options.frequency_penalty = 0.1;
  options.no_repeat_ngram = 3;
  options.min_new_tokens = 4;
  options.bad_words = {{1, 2}};
  SamplingOptions plain;  // the walk may sort everything
  plain.temperature = 5;
  const Logits logits = RandomLogits(7, n);
  for (const SamplingOptions& kind : {options, plain, SamplingOptions()}) {
    const Sampler sampler = Make(kind, n, {5});
    SamplerScratch scratch(n);
    Ids ids = {1, 2, 3};
    ids.reserve(100);
    const Target target = Target::Best();
    size_t before = 0;
    for (int step = 0; step < 50; ++step) {
      if (step == 1) before = allocations;
      const auto token = sampler.Step(target, {logits, {ids, 3}}, scratch);
      ASSERT_TRUE(token.ok());
      ids.push_back(token->id);
    }
    EXPECT_EQ(allocations - before, 0u);
  }
}

TEST(Sampler, SameTokensOnEveryTargetWithFma) {
  const size_t n = 30000;
  SamplingOptions options;
  options.temperature = 0.9;
  options.top_p = 0.9;
  options.repetition_penalty = 1.2;
  const Sampler sampler = Make(options, n);
  Ids expected;
  std::vector<double> expected_log_probs;
  ForEachTarget([&](const Target& target) {
    if (!target.has_fma()) return;
    SamplerScratch scratch(n);
    Ids ids = {1, 2, 3};
    std::vector<double> log_probs;
    for (uint64_t step = 0; step < 40; ++step) {
      const Logits logits = RandomLogits(step, n);
      const auto token = sampler.Step(target, {logits, {ids, 3}}, scratch);
      ASSERT_TRUE(token.ok());
      ids.push_back(token->id);
      log_probs.push_back(token->log_prob);
    }
    if (expected.empty()) {
      expected = ids;
      expected_log_probs = log_probs;
    }
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(log_probs, expected_log_probs);
  });
}

}  // namespace
}  // namespace lanewise
