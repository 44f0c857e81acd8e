// Scoring through the public API: tests/runtime/score_golden_test.cc compares
// with recorded values; here are prompts, windows, schedules and errors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "tests/data/models/llama";  // puts <s> before a text
constexpr char kGpt2[] = "tests/data/models/gpt2";    // puts nothing
constexpr char kText[] = "It wasn't the first 42 times";

EngineOptions Exact() {
  EngineOptions options;
  options.activations = ActivationPrecision::kF32;
  options.cache = CachePrecision::kF32;
  return options;
}

ScoreRequest Text(const std::string& text, const std::string& prompt = "") {
  ScoreRequest request;
  request.text = text;
  request.prompt = prompt;
  return request;
}

ScoreRequest SomeIds(size_t count) {
  ScoreRequest request;
  for (size_t i = 0; i < count; ++i) {
    request.ids.push_back(static_cast<int32_t>(3 + 37 * i % 400));
  }
  return request;
}

ScoreResult MustScore(Engine& engine, const ScoreRequest& request) {
  const auto result = engine.Score(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ScoreResult();
}

Ids TextIds(const Engine& engine, const std::string& text) {
  GenerateRequest request;
  request.prompt = text;
  const auto ids = engine.PromptIds(request);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : Ids();
}

// What the definition says, from logits of all positions of `ids`: the
// log-probability of each from index `first` on.
std::vector<double> Reference(Engine& engine, const Ids& ids, size_t first) {
  const auto logits = engine.Logits(ids);
  EXPECT_TRUE(logits.ok()) << logits.status();
  std::vector<double> values;
  const size_t vocab = engine.vocab_size();
  for (size_t i = first; logits.ok() && i < ids.size(); ++i) {
    const float* row = logits->data() + (i - 1) * vocab;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t j = 0; j < vocab; ++j) {
      largest = std::max(largest, double{row[j]});
    }
    for (size_t j = 0; j < vocab; ++j) sum += std::exp(row[j] - largest);
    values.push_back(row[ids[i]] - largest - std::log(sum));
  }
  return values;
}

void ExpectNear(const std::vector<double>& found,
                const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance) << i;
  }
}

TEST(Score, IsTheLogSoftmaxOfTheLogitsOfTheTokenBefore) {
  const auto engine = LoadEngine(kModel, Exact());
  ASSERT_NE(engine, nullptr);
  const ScoreResult result = MustScore(*engine, Text(kText));
  const Ids ids = TextIds(*engine, kText);
  EXPECT_EQ(result.prompt_tokens, 1u);  // <s>
  EXPECT_EQ(result.ids, Ids(ids.begin() + 1, ids.end()));
  ExpectNear(result.log_probabilities, Reference(*engine, ids, 1), 1e-5);
  double sum = 0;
  for (const double value : result.log_probabilities) sum -= value;
  EXPECT_NEAR(result.mean_nll, sum / static_cast<double>(result.ids.size()),
              1e-12);
  EXPECT_NEAR(result.perplexity / std::exp(result.mean_nll), 1, 1e-12);
  EXPECT_GE(result.seconds, 0);
}

TEST(Score, TheFirstTokenIsNeverScored) {
  const auto engine = LoadEngine(kGpt2);
  ASSERT_NE(engine, nullptr);
  const Ids ids = TextIds(*engine, kText);
  const ScoreResult result = MustScore(*engine, Text(kText));
  EXPECT_EQ(result.prompt_tokens, 1u);
  EXPECT_EQ(result.ids, Ids(ids.begin() + 1, ids.end()));
}

TEST(Score, S4EqualsWhatGenerationReports) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  GenerateRequest generate;
  generate.prompt = "The quick brown";
  generate.max_tokens = 20;
  generate.ignore_end = true;
  const auto text = engine->Generate(generate, {});
  ASSERT_TRUE(text.ok()) << text.status();
  ScoreRequest request;
  request.prompt_ids = TextIds(*engine, generate.prompt);
  request.ids = text->ids;
  const ScoreResult result = MustScore(*engine, request);
  EXPECT_EQ(result.ids, text->ids);
  EXPECT_EQ(result.log_probabilities, text->log_probabilities);  // every bit
  generate.beams.num_beams = generate.beams.num_return_sequences = 3;
  const auto beams = engine->Generate(generate, {});
  ASSERT_TRUE(beams.ok()) << beams.status();
  for (const Hypothesis& hypothesis : beams->hypotheses) {
    request.ids = hypothesis.ids;
    const ScoreResult score = MustScore(*engine, request);
    EXPECT_NEAR(-score.mean_nll * static_cast<double>(score.ids.size()),
                hypothesis.log_probability, 1e-4);
  }
}

TEST(Score, APromptIsReadButNotScored) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const ScoreResult whole = MustScore(*engine, SomeIds(50));
  for (const size_t split : {1, 2, 17, 49}) {
    ScoreRequest request;
    const Ids all = SomeIds(50).ids;
    request.prompt_ids.assign(all.begin(), all.begin() + split);
    request.ids.assign(all.begin() + split, all.end());
    const ScoreResult result = MustScore(*engine, request);
    EXPECT_EQ(result.prompt_tokens, split);
    EXPECT_EQ(result.ids, request.ids);
    EXPECT_EQ(result.log_probabilities,
              std::vector<double>(whole.log_probabilities.begin() + (split - 1),
                                  whole.log_probabilities.end()));
  }
}

TEST(Score, PromptAndTextAreTokenizedAsOne) {
  for (const char* model : {kModel, kGpt2}) {
    const auto engine = LoadEngine(model);
    ASSERT_NE(engine, nullptr);
    const std::string all = kText;
    const Ids ids = TextIds(*engine, all);
    const ScoreResult whole = MustScore(*engine, Text(all));
    bool within_a_token = false;
    for (size_t at = 1; at < all.size(); ++at) {
      const std::string prompt = all.substr(0, at);
      const ScoreResult result =
          MustScore(*engine, Text(all.substr(at), prompt));
      ASSERT_EQ(result.prompt_tokens + result.ids.size(), ids.size());
      EXPECT_TRUE(
          std::equal(result.ids.rbegin(), result.ids.rend(), ids.rbegin()));
      EXPECT_TRUE(std::equal(result.log_probabilities.rbegin(),
                             result.log_probabilities.rend(),
                             whole.log_probabilities.rbegin()));
      const Ids before(ids.begin(), ids.begin() + result.prompt_tokens);
      EXPECT_LE(engine->Decode(before).size(), prompt.size() + 1);
      within_a_token |= TextIds(*engine, prompt).size() > before.size();
    }
    EXPECT_TRUE(within_a_token) << model;  // the case was among them
  }
}

TEST(Score, ControlTokensAreTextUnlessAskedFor) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  ScoreRequest request = Text("</s>");
  EXPECT_GT(MustScore(*engine, request).ids.size(), 1u);
  request.parse_special = true;
  EXPECT_EQ(MustScore(*engine, request).ids, Ids{2});
}

TEST(Score, ATokenizersTruncationDoesNotCutTheText) {
  ModelFolder folder("llama");
  folder.EditJson("tokenizer.json", [](auto& json) {
    json["truncation"] = {{"direction", "Right"},
                          {"max_length", 4},
                          {"strategy", "LongestFirst"},
                          {"stride", 0}};
  });
  const auto plain = LoadEngine(kModel), cut = LoadEngine(folder.path());
  ASSERT_TRUE(plain != nullptr && cut != nullptr);
  EXPECT_EQ(MustScore(*cut, Text(kText)).ids,
            MustScore(*plain, Text(kText)).ids);
}

TEST(Score, ThreadsAndChunksDoNotMatter) {
  ModelFolder dynamic("llama");  // frequencies that depend on the length
  dynamic.EditJson("config.json", [](auto& json) {
    json["max_position_embeddings"] = 24;
    json["rope_parameters"] = {
        {"rope_type", "dynamic"}, {"factor", 4.0}, {"rope_theta", 10000.0}};
  });
  for (const std::string& model : {std::string(kModel), dynamic.path()}) {
    std::vector<double> expected;
    for (const size_t threads : {1, 3}) {
      for (const size_t chunk : {1, 7, 512}) {
        EngineOptions options;
        options.threads = threads;
        options.prefill_chunk = chunk;
        const auto engine = LoadEngine(model, options);
        ASSERT_NE(engine, nullptr);
        const ScoreResult result = MustScore(*engine, SomeIds(60));
        if (expected.empty()) expected = result.log_probabilities;
        EXPECT_EQ(result.log_probabilities, expected);
        const auto session = *engine->NewSession();
        for (const size_t size : {50, 60, 59, 60}) {
          const auto other = session->Score(SomeIds(size), {});
          ASSERT_TRUE(other.ok()) << other.status();
          if (size != 60) continue;
          EXPECT_EQ(other->log_probabilities, expected);
        }
      }
    }
    ASSERT_EQ(expected.size(), 59u);
  }
}

TEST(Score, A8ParallelRequestsAreAlike) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const ScoreResult expected = MustScore(*engine, SomeIds(40));
  std::vector<std::vector<double>> found(4);
  std::vector<std::thread> threads;
  for (auto& values : found) {
    threads.emplace_back([&engine, &values] {
      values = MustScore(*engine, SomeIds(40)).log_probabilities;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, Each(expected.log_probabilities));
}

// The windows of the definition, each computed on its own.
TEST(Score, WindowsAreIndependentAndScoreEachTokenOnce) {
  EngineOptions options = Exact();
  options.context_length = 16;
  options.prefill_chunk = 5;
  const auto engine = LoadEngine(kModel, options);
  ASSERT_NE(engine, nullptr);
  const auto session = *engine->NewSession();
  for (const size_t size : {2, 15, 16, 17, 40}) {
    for (const size_t stride : {1, 5, 15}) {
      for (const size_t prompt : {0, 1, 14, 25}) {
        if (prompt >= size) continue;
        const Ids all = SomeIds(size).ids;
        ScoreRequest request;
        request.prompt_ids.assign(all.begin(), all.begin() + prompt);
        request.ids.assign(all.begin() + prompt, all.end());
        request.stride = stride;
        std::vector<double> expected;
        size_t next = std::max<size_t>(prompt, 1);
        for (size_t begin = 0; next < size; begin += stride) {
          const size_t end = std::min(begin + 16, size);
          if (end <= next) continue;
          const auto part =
              Reference(*engine, Ids(all.begin() + begin, all.begin() + end),
                        next - begin);
          expected.insert(expected.end(), part.begin(), part.end());
          next = end;
        }
        SCOPED_TRACE(testing::Message() << size << " tokens, stride " << stride
                                        << ", prompt " << prompt);
        const ScoreResult result = MustScore(*engine, request);
        EXPECT_EQ(result.ids.size(), size - std::max<size_t>(prompt, 1));
        ExpectNear(result.log_probabilities, expected, 1e-5);
        // Whatever another request has left in a session.
        const auto again = session->Score(request, {});
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(again->log_probabilities, result.log_probabilities);
      }
    }
  }
}

TEST(Score, A10ASessionKeepsThePromptAndChangesNoBit) {
  for (const size_t chunk : {3, 512}) {
    EngineOptions options;
    options.prefill_chunk = chunk;
    const auto engine = LoadEngine(kModel, options);
    ASSERT_NE(engine, nullptr);
    const auto session = *engine->NewSession();
    ScoreRequest request;
    request.prompt_ids = SomeIds(60).ids;
    size_t cached = 0;
    for (const Ids& ids : std::vector<Ids>{{5, 6, 7}, {5, 6, 7}, {8}, {9, 5}}) {
      request.ids = ids;
      const auto kept = session->Score(request, {});
      ASSERT_TRUE(kept.ok()) << kept.status();
      EXPECT_EQ(kept->cached_tokens, cached);
      EXPECT_EQ(kept->prompt_tokens, 60u);
      EXPECT_EQ(kept->log_probabilities,
                MustScore(*engine, request).log_probabilities);
      cached = 59;  // the last one's logits are wanted
    }
    // The other way, and between: generation and scoring share the cache.
    GenerateRequest generate;
    generate.prompt_ids = request.prompt_ids;
    generate.max_tokens = 4;
    generate.hash_logits = true;
    const auto warm = session->Generate(generate, {});
    const auto cold = engine->Generate(generate, {});
    ASSERT_TRUE(warm.ok() && cold.ok());
    EXPECT_EQ(warm->cached_tokens, 59u);
    EXPECT_EQ(warm->logits_hash, cold->logits_hash);
    const auto after = session->Score(request, {});
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(after->cached_tokens, 59u);
    EXPECT_EQ(after->log_probabilities,
              MustScore(*engine, request).log_probabilities);
  }
}

TEST(Score, ASessionSurvivesErrorsAndCancellation) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const auto session = *engine->NewSession();
  const ScoreRequest good = SomeIds(50);
  const ScoreResult expected = MustScore(*engine, good);
  ScoreRequest bad = SomeIds(20);
  bad.ids.back() = -1;
  ScoreCallbacks cancel;
  cancel.should_cancel = [] { return true; };
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(session->Score(bad, {}).ok());
    EXPECT_FALSE(session->Score(SomeIds(30), cancel).ok());
    const auto result = session->Score(good, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->log_probabilities, expected.log_probabilities);
  }
}

TEST(Score, ProgressCountsAndCancellationEndsIt) {
  EngineOptions options;
  options.context_length = 16;
  options.prefill_chunk = 4;
  const auto engine = LoadEngine(kModel, options);
  ASSERT_NE(engine, nullptr);
  ScoreRequest request = SomeIds(30);
  request.stride = 8;
  std::vector<size_t> steps;
  size_t all = 0;
  ScoreCallbacks callbacks;
  callbacks.on_progress = [&](size_t done, size_t total) {
    EXPECT_GT(done, steps.empty() ? 0 : steps.back());
    steps.push_back(done);
    all = total;
  };
  int asked = 0;
  callbacks.should_cancel = [&] { return ++asked < 0; };
  ASSERT_TRUE(engine->Score(request, callbacks).ok());
  EXPECT_EQ(steps.back(), all);
  EXPECT_EQ(all, 15u + 15u + 13u);  // [0, 16), [8, 24), [16, 30), less the last
  EXPECT_EQ(static_cast<size_t>(asked), steps.size());
  for (int last = 0; last < asked; ++last) {
    int again = 0;
    callbacks.should_cancel = [&] { return again++ == last; };
    callbacks.on_progress = {};
    EXPECT_EQ(engine->Score(request, callbacks).status().code(),
              absl::StatusCode::kCancelled);
    EXPECT_EQ(again, last + 1);
  }
}

class ScoreErrorTest : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.context_length = 16;
    engine_ = LoadEngine(kModel, options);
    ASSERT_NE(engine_, nullptr);
  }

  void ExpectError(const ScoreRequest& request, absl::StatusCode code,
                   const testing::Matcher<std::string>& message) {
    const auto result = engine_->Score(request, {});
    EXPECT_EQ(result.status().code(), code);
    EXPECT_THAT(std::string(result.status().message()), message);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(ScoreErrorTest, A17LongTextsNameBothNumbersAndTheWayOut) {
  ExpectError(SomeIds(24), absl::StatusCode::kOutOfRange,
              AllOf(HasSubstr("24"), HasSubstr("16"), HasSubstr("stride")));
  EXPECT_TRUE(engine_->Score(SomeIds(16), {}).ok());
  ScoreRequest split = SomeIds(10);
  split.prompt_ids = SomeIds(7).ids;
  ExpectError(split, absl::StatusCode::kOutOfRange,
              AllOf(HasSubstr("17"), HasSubstr("16")));
}

TEST_F(ScoreErrorTest, RequestsThatContradictThemselves) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectError({}, kInvalid, HasSubstr("neither"));
  ScoreRequest both = SomeIds(3);
  both.text = "x";
  ExpectError(both, kInvalid, HasSubstr("both"));
  ScoreRequest mixed = SomeIds(3);
  mixed.prompt = "x";
  ExpectError(mixed, kInvalid, HasSubstr("prompt_ids with ids"));
  ScoreRequest other = Text("x");
  other.prompt_ids = {1};
  ExpectError(other, kInvalid, HasSubstr("prompt_ids with ids"));
  ScoreRequest stride = SomeIds(3);
  stride.stride = 16;
  ExpectError(stride, kInvalid, AllOf(HasSubstr("stride"), HasSubstr("16")));
  ExpectError(SomeIds(1), kInvalid, HasSubstr("found 1 tokens"));
}

TEST_F(ScoreErrorTest, IdsOutsideOfTheVocabulary) {
  const int32_t vocab = static_cast<int32_t>(engine_->vocab_size());
  for (const int32_t id : {-1, vocab, std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()}) {
    for (const size_t at : {0, 3, 7}) {  // the last one is only looked up
      ScoreRequest request = SomeIds(8);
      request.ids[at] = id;
      ExpectError(request, absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr("token " + std::to_string(at)),
                        HasSubstr(std::to_string(id))));
    }
  }
}

TEST_F(ScoreErrorTest, NonFiniteLogitsNameTheToken) {
  ModelFolder folder("llama");
  folder.EditValues("model.embed_tokens.weight", [](size_t i) {
    return i / 48 == 7 ? std::numeric_limits<float>::quiet_NaN() : 0.01f;
  });
  engine_ = LoadEngine(folder.path());
  ASSERT_NE(engine_, nullptr);
  ScoreRequest request;
  request.ids = {1, 5, 6, 7, 8, 9};
  ExpectError(request, absl::StatusCode::kInternal,
              AllOf(HasSubstr("token 4"), HasSubstr("finite")));
  request.ids = {1, 5, 6, 7};  // its own embedding is not read
  EXPECT_TRUE(engine_->Score(request, {}).ok());
}

TEST(Score, ModelsThatDoNotPredictTheNextTokenSayIt) {
  ModelFolder folder("bert");
  folder.Write("tokenizer.json",
               R"({"model": {"type": "WordLevel", "vocab": {"a": 0},
                             "unk_token": "a"}})");
  const auto engine = LoadEngine(folder.path());
  ASSERT_NE(engine, nullptr);
  ScoreRequest request;
  request.ids = {1, 2, 3};
  EXPECT_EQ(engine->Score(request, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Score, TokenTextsAreSpelledAsInTheVocabulary) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->TokenText(1), "<s>");
  EXPECT_EQ(engine->TokenText(-1), "");
  EXPECT_EQ(engine->TokenText(1'000'000), "");
}

}  // namespace
}  // namespace lanewise
