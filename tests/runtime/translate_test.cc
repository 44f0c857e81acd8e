// Translation through the public API: schedules, requests, streaming, errors.
// tests/runtime/translate_golden_test.cc and tests/conformance/g2p_test.cc
// compare with recorded values, translate_language_test.cc has languages.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "tools/models/g2p_t5";
constexpr char kLlama[] = "tests/data/models/llama";
const std::vector<std::string> kWords = {
    "beezley", "a", "incomprehensibilities", "world", "beezley", "x'y", "cat"};

TranslateRequest Request(std::vector<std::string> texts) {
  TranslateRequest request;
  request.texts = std::move(texts);
  request.options.emplace();
  request.hash_logits = true;
  return request;
}

TranslateRequest Beams(std::vector<std::string> texts, int32_t beams) {
  TranslateRequest request = Request(std::move(texts));
  request.options->beams.num_beams = beams;
  request.options->beams.num_return_sequences = beams;
  return request;
}

TranslateRequest Sampled(std::vector<std::string> texts, uint64_t seed) {
  TranslateRequest request = Request(std::move(texts));
  request.options->sampling.temperature = 1.5;
  request.options->sampling.seed = seed;
  return request;
}

TranslateResult MustTranslate(Engine& engine, const TranslateRequest& request,
                              const TranslateCallbacks& callbacks = {}) {
  const auto result = engine.Translate(request, callbacks);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : TranslateResult();
}

// Every bit of it.
void ExpectSame(const Translation& found, const Translation& expected) {
  EXPECT_EQ(found.text, expected.text);
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.log_probabilities, expected.log_probabilities);
  EXPECT_EQ(found.source_tokens, expected.source_tokens);
  EXPECT_EQ(found.finish_reason, expected.finish_reason);
  EXPECT_EQ(found.logits_hash, expected.logits_hash);
  EXPECT_EQ(found.logits_hash.size(), 64u);
  ASSERT_EQ(found.hypotheses.size(), expected.hypotheses.size());
  for (size_t i = 0; i < found.hypotheses.size(); ++i) {
    EXPECT_EQ(found.hypotheses[i].ids, expected.hypotheses[i].ids);
    EXPECT_EQ(found.hypotheses[i].text, expected.hypotheses[i].text);
    EXPECT_EQ(found.hypotheses[i].score, expected.hypotheses[i].score);
  }
}

TEST(Translate, ABatchEqualsEachInputAlone) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const TranslateRequest requests[] = {Request(kWords), Sampled(kWords, 7),
                                       Beams(kWords, 4)};
  for (const TranslateRequest& whole : requests) {
    const TranslateResult all = MustTranslate(*engine, whole);
    ASSERT_EQ(all.translations.size(), kWords.size());
    for (size_t i = 0; i < kWords.size(); ++i) {
      TranslateRequest one = whole;
      one.texts = {kWords[i]};
      const TranslateResult alone = MustTranslate(*engine, one);
      ASSERT_EQ(alone.translations.size(), 1u);
      ExpectSame(all.translations[i], alone.translations[0]);
    }
    EXPECT_NE(all.translations[0].logits_hash, all.translations[1].logits_hash);
    ExpectSame(all.translations[4], all.translations[0]);  // the same word
  }
}

TEST(Translate, NoScheduleChangesABit) {
  const auto reference = LoadEngine(kModel);
  ASSERT_NE(reference, nullptr);
  for (const bool beams : {false, true}) {
    TranslateRequest request = beams ? Beams(kWords, 3) : Request(kWords);
    const TranslateResult expected = MustTranslate(*reference, request);
    for (const size_t threads : {1, 3}) {
      EngineOptions options;
      options.threads = threads;
      const auto engine = LoadEngine(kModel, options);
      ASSERT_NE(engine, nullptr);
      for (const size_t batch : {1, 2, 7}) {
        request.batch = batch;
        const TranslateResult found = MustTranslate(*engine, request);
        ASSERT_EQ(found.translations.size(), kWords.size());
        for (size_t i = 0; i < kWords.size(); ++i) {
          ExpectSame(found.translations[i], expected.translations[i]);
        }
      }
    }
  }
}

// Keys and values that were computed one token at a time are those of one pass.
TEST(Translate, CachedDecodingEqualsUncached) {
  for (const CachePrecision cache :
       {CachePrecision::kF16, CachePrecision::kF32}) {
    EngineOptions options;
    options.cache = cache;
    const auto engine = LoadEngine(kModel, options);
    ASSERT_NE(engine, nullptr);
    const Translation whole =
        MustTranslate(*engine, Request({kWords[2]})).translations.at(0);
    ASSERT_GT(whole.ids.size(), 8u);
    for (size_t kept = 1; kept < whole.ids.size(); ++kept) {
      TranslateRequest request = Request({kWords[2]});
      request.decoder_prompt_ids.assign(whole.ids.begin(),
                                        whole.ids.begin() + kept);
      const Translation rest =
          MustTranslate(*engine, request).translations.at(0);
      EXPECT_EQ(rest.ids, Ids(whole.ids.begin() + kept, whole.ids.end()));
      EXPECT_EQ(rest.log_probabilities,
                std::vector<double>(whole.log_probabilities.begin() + kept,
                                    whole.log_probabilities.end()));
    }
  }
}

TEST(Translate, IdsAreWhatTheTokenizerGives) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  TranslateRequest request = Request({});
  request.ids = {{4, 7, 7, 28, 14, 7, 27, 1}};
  ExpectSame(MustTranslate(*engine, request).translations.at(0),
             MustTranslate(*engine, Request({"BeezLey"})).translations.at(0));
}

TEST(Translate, TextComesInPiecesThatMakeTheWhole) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  for (const bool beams : {false, true}) {
    std::vector<std::string> shown(kWords.size());
    std::vector<size_t> pieces(kWords.size());
    std::vector<size_t> progress;
    TranslateCallbacks callbacks;
    callbacks.on_text = [&](size_t input, absl::string_view text) {
      shown.at(input).append(text);
      ++pieces.at(input);
      return true;
    };
    callbacks.on_progress = [&](size_t done, size_t total) {
      EXPECT_EQ(total, kWords.size());
      progress.push_back(done);
    };
    TranslateRequest request = beams ? Beams(kWords, 2) : Request(kWords);
    request.batch = 3;
    const TranslateResult result = MustTranslate(*engine, request, callbacks);
    for (size_t i = 0; i < kWords.size(); ++i) {
      EXPECT_EQ(shown[i], result.translations[i].text);
      EXPECT_FALSE(shown[i].empty());
      if (beams) {
        EXPECT_EQ(pieces[i], 1u);
      } else if (shown[i].size() > 8) {
        EXPECT_GT(pieces[i], 2u);
      }
    }
    EXPECT_EQ(progress, (std::vector<size_t>{3, 6, 7}));
  }
}

TEST(Translate, ManyBeamsMakeSmallerGroups) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  std::vector<size_t> progress;
  TranslateCallbacks callbacks;
  callbacks.on_progress = [&](size_t done, size_t) {
    progress.push_back(done);
  };
  TranslateRequest request = Beams({"a", "cat", "x"}, 200);
  request.options->max_tokens = 5;
  const TranslateResult result = MustTranslate(*engine, request, callbacks);
  EXPECT_EQ(progress, (std::vector<size_t>{2, 3}));
  request.texts = {"x"};
  ExpectSame(MustTranslate(*engine, request).translations.at(0),
             result.translations.at(2));
}

TEST(Translate, EndsWhenTheCallerSaysSo) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  for (const bool beams : {false, true}) {
    TranslateRequest request = beams ? Beams(kWords, 2) : Request(kWords);
    request.batch = 4;
    const TranslateResult whole = MustTranslate(*engine, request);
    size_t asked = 0;
    TranslateCallbacks callbacks;
    callbacks.should_cancel = [&] { return ++asked > 4; };
    const TranslateResult part = MustTranslate(*engine, request, callbacks);
    ASSERT_EQ(part.translations.size(), kWords.size());
    const Translation& last = part.translations.back();
    EXPECT_EQ(last.finish_reason, FinishReason::kCancelled);
    EXPECT_TRUE(last.ids.empty());
    const Translation& first = part.translations.front();
    EXPECT_EQ(first.finish_reason, FinishReason::kCancelled);
    EXPECT_LT(first.ids.size(), whole.translations.front().ids.size());
    EXPECT_TRUE(absl::string_view(whole.translations.front().text)
                    .substr(0, first.text.size()) == first.text);
  }
  size_t texts = 0;
  TranslateCallbacks callbacks;
  callbacks.on_text = [&](size_t, absl::string_view) { return ++texts < 2; };
  const TranslateResult part =
      MustTranslate(*engine, Request(kWords), callbacks);
  EXPECT_EQ(texts, 2u);
  EXPECT_EQ(part.translations.back().finish_reason, FinishReason::kCancelled);
}

TEST(Translate, LimitsAndProcessorsHold) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const Translation plain =
      MustTranslate(*engine, Request({"beezley"})).translations.at(0);
  ASSERT_EQ(plain.ids, (Ids{48, 68, 97, 72, 67, 1}));
  for (const bool beams : {false, true}) {
    const auto translate = [&](const auto& edit) {
      TranslateRequest request =
          beams ? Beams({"beezley"}, 3) : Request({"beezley"});
      edit(*request.options);
      return MustTranslate(*engine, request).translations.at(0);
    };
    const auto sampling = [&](const auto& edit) {
      return translate([&](TranslateOptions& o) { edit(o.sampling); }).ids;
    };
    const Translation cut =
        translate([](TranslateOptions& o) { o.max_tokens = 3; });
    EXPECT_EQ(cut.ids, (Ids{48, 68, 97}));
    EXPECT_EQ(cut.finish_reason, FinishReason::kLength);
    EXPECT_EQ(cut.text, "B IY1 Z");
    const Translation none =
        translate([](TranslateOptions& o) { o.max_tokens = 0; });
    EXPECT_TRUE(none.ids.empty());
    EXPECT_EQ(none.finish_reason, FinishReason::kLength);
    EXPECT_GT(sampling([](auto& s) { s.min_new_tokens = 9; }).size(), 9u);
    EXPECT_EQ(sampling([](auto& s) { s.forced_first_id = 61; })[0], 61);
    const Translation forced = translate([](TranslateOptions& o) {
      o.max_tokens = 4;
      o.sampling.forced_last_id = 1;
    });
    EXPECT_EQ(forced.ids, (Ids{48, 68, 97, 1}));
    EXPECT_EQ(forced.finish_reason, FinishReason::kEnd);
    EXPECT_THAT(sampling([](auto& s) { s.suppressed_ids = {68}; }),
                testing::Not(testing::Contains(68)));
    EXPECT_NE(sampling([](auto& s) { s.begin_suppressed_ids = {48}; })[0], 48);
    const Ids banned = sampling([](auto& s) { s.bad_words = {{48, 68}}; });
    EXPECT_EQ(banned[0], 48);
    EXPECT_NE(banned[1], 68);
    const Translation on = translate([](TranslateOptions& o) {
      o.end_ids = Ids{97};
      o.max_tokens = 30;
    });
    EXPECT_EQ(on.ids, (Ids{48, 68, 97}));
    EXPECT_EQ(on.text, "B IY1");
  }
  TranslateRequest request = Request({"banana"});
  request.options->end_ids = Ids();  // goes on
  request.options->max_tokens = 30;
  request.options->sampling.no_repeat_ngram = 1;
  Ids ids = MustTranslate(*engine, request).translations.at(0).ids;
  ASSERT_EQ(ids.size(), 30u);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Translate, SeedsReproduce) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  TranslateRequest request = Sampled(kWords, 0);
  request.options->sampling.seed.reset();
  const TranslateResult first = MustTranslate(*engine, request);
  request.options->sampling.seed = first.seed;
  const TranslateResult again = MustTranslate(*engine, request);
  EXPECT_EQ(again.seed, first.seed);
  for (size_t i = 0; i < kWords.size(); ++i) {
    ExpectSame(again.translations[i], first.translations[i]);
  }
  size_t others = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    others +=
        MustTranslate(*engine, Sampled(kWords, seed)).translations[2].ids !=
        first.translations[2].ids;
  }
  EXPECT_GT(others, 0u);
}

// M5: two requests at once, each with its own encoder pass and memory.
TEST(Translate, M5RequestsAtOnceDoNotMix) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const TranslateRequest requests[] = {Request(kWords), Beams({"world"}, 4)};
  const TranslateResult expected[] = {MustTranslate(*engine, requests[0]),
                                      MustTranslate(*engine, requests[1])};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const TranslateResult found = MustTranslate(*engine, requests[t % 2]);
      for (size_t i = 0; i < found.translations.size(); ++i) {
        ExpectSame(found.translations[i], expected[t % 2].translations[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void ExpectError(Engine& engine, const TranslateRequest& request,
                 absl::StatusCode code,
                 const testing::Matcher<std::string>& message) {
  const auto result = engine.Translate(request, {});
  EXPECT_EQ(result.status().code(), code) << result.status();
  EXPECT_THAT(std::string(result.status().message()), message);
}

TEST(Translate, RefusesContradictoryRequests) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  const auto expect = [&](const auto& edit, const std::string& part) {
    TranslateRequest request = Request({"word"});
    edit(request);
    ExpectError(*engine, request, absl::StatusCode::kInvalidArgument,
                HasSubstr(part));
  };
  expect([](auto& r) { r.texts.clear(); }, "found neither");
  expect([](auto& r) { r.ids = {{1}}; }, "found both");
  expect(
      [](auto& r) {
        r.texts.clear(), r.ids = {{4, 1}, {}};
      },
      "input 1: expected at least one token");
  expect(
      [](auto& r) {
        r.texts.clear(), r.ids = {{4, 99}};
      },
      "input 0: expected ids of 0 to 98, found 99");
  expect([](auto& r) { r.batch = 0; }, "batch: expected at least 1");
  expect([](auto& r) { r.options->start_id = -1; },
         "decoder prompt: expected ids of 0 to 98, found -1");
  expect([](auto& r) { r.decoder_prompt_ids = {3, 400}; }, "found 400");
  expect([](auto& r) { r.decoder_prompt = "a", r.decoder_prompt_ids = {3}; },
         "expected one of decoder_prompt and decoder_prompt_ids");
  expect([](auto& r) { r.options->beams.num_return_sequences = 2; },
         "num_return_sequences");
  expect(
      [](auto& r) {
        r.options->beams.num_beams = 2;
        r.options->sampling.temperature = 1;
      },
      "temperature: expected 0");
  expect([](auto& r) { r.options->sampling.suppressed_ids = {99}; },
         "suppressed_ids[0]");
  expect([](auto& r) { r.task = "summarization"; },
         "task: expected none, since the model's config.json names none, found "
         "\"summarization\"");
  expect([](auto& r) { r.target_language = "de"; },
         "target_language: the model has no languages");
  expect([](auto& r) { r.source_language = "de"; },
         "source_language: the model has no languages");
  EXPECT_TRUE(engine->Translate(Request({""}), {}).ok());  // </s> alone
}

TEST(Translate, TooLongAnInputNamesBothNumbers) {
  EngineOptions options;
  options.context_length = 10;
  const auto engine = LoadEngine(kModel, options);
  ASSERT_NE(engine, nullptr);
  ExpectError(*engine, Request({"word", "abcdefghij"}),
              absl::StatusCode::kOutOfRange,
              AllOf(HasSubstr("input 1: 11 tokens"),
                    HasSubstr("the encoder's 10 positions")));
  EXPECT_TRUE(engine->Translate(Request({"abcdefghi"}), {}).ok());
  TranslateRequest request = Request({"word"});
  request.decoder_prompt_ids.assign(9, 48);
  ExpectError(*engine, request, absl::StatusCode::kOutOfRange,
              AllOf(HasSubstr("decoder prompt: 10 tokens"),
                    HasSubstr("the decoder's 10 positions")));
  // What the decoder's positions leave ends the text.
  request.decoder_prompt_ids.assign(4, 48);
  request.options->end_ids = Ids();
  for (const int32_t beams : {1, 2}) {
    request.options->beams.num_beams = beams;
    const TranslateResult result = MustTranslate(*engine, request);
    EXPECT_EQ(result.translations.at(0).ids.size(), 5u);
  }
}

TEST(Translate, MemoryThatDoesNotSufficeIsAStatus) {
  EngineOptions options;
  options.max_cache_bytes = 1000;
  const auto engine = LoadEngine(kModel, options);
  ASSERT_NE(engine, nullptr);
  for (const TranslateRequest& request : {Request(kWords), Beams(kWords, 4)}) {
    const auto result = engine->Translate(request, {});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted)
        << result.status();
  }
}

TEST(Translate, LogitsThatAreNotFiniteNameTheInput) {
  ModelFolder folder("t5");
  folder.EditValues("decoder.final_layer_norm.weight", [](size_t) {
    return std::numeric_limits<float>::quiet_NaN();
  });
  const auto engine = LoadEngine(folder.path());
  ASSERT_NE(engine, nullptr);
  for (const TranslateRequest& request : {Request({"a"}), Beams({"a"}, 2)}) {
    ExpectError(*engine, request, absl::StatusCode::kInternal,
                AllOf(HasSubstr("input 0"), HasSubstr("step 0")));
  }
}

TEST(Translate, OtherModelsSayWhatTheyAreFor) {
  const auto translator = LoadEngine(kModel);
  const auto generator = LoadEngine(kLlama);
  ASSERT_TRUE(translator != nullptr && generator != nullptr);
  ExpectError(*generator, Request({"a"}), absl::StatusCode::kFailedPrecondition,
              HasSubstr("expected an encoder-decoder"));
  EXPECT_EQ(generator->TranslateDefaults({}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  GenerateRequest generate;
  generate.prompt = "a";
  for (const absl::Status& status :
       {translator->Generate(generate, {}).status(),
        translator->NewSession().status(),
        translator->Logits(Ids{1, 2}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  }
  EXPECT_THAT(
      std::string(translator->Generate(generate, {}).status().message()),
      HasSubstr("Translate"));
}

}  // namespace
}  // namespace lanewise
