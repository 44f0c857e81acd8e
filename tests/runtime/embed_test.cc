// Vectors of texts, against scalar pooling of the rows that the executor gives.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/embed_reference.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Embed, M17EveryPoolingIsThatOfTheRealRows) {
  const ModelFolder folder("bert_mlm");
  const auto engine = LoadEngine(folder.path());
  for (const EmbedPooling pooling :
       {EmbedPooling::kFirst, EmbedPooling::kLast, EmbedPooling::kMean,
        EmbedPooling::kMax, EmbedPooling::kMeanSqrtLength,
        EmbedPooling::kWeightedMean, EmbedPooling::kModel}) {
    EmbedRequest request = Request(Texts());
    request.pooling = pooling;
    const Vectors plain = Embed(engine.get(), request);
    request.normalize = true;
    const Vectors scaled = Embed(engine.get(), request);
    ASSERT_EQ(plain.size(), Texts().size());
    for (size_t i = 0; i < plain.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(pooling), " of text ", i));
      const auto expected =
          Pooled(pooling, HiddenRows(folder.path(), Texts()[i]));
      ExpectNear(plain[i], expected);
      ExpectNear(scaled[i], Normalized(expected));
    }
  }
}

TEST(Embed, A11NoBitDependsOnTheBatchTheThreadsOrTheOrder) {
  EngineOptions one;
  one.threads = 1;
  const auto alone = LoadEngine("tests/data/models/bert_mlm", one);
  Vectors expected;
  for (const std::string& text : Texts()) {
    expected.push_back(Embed(alone.get(), Request({text}))[0]);
  }
  for (const size_t threads : {1, 3}) {
    EngineOptions options;
    options.threads = threads;
    const auto engine = LoadEngine("tests/data/models/bert_mlm", options);
    for (const size_t tokens : {1, 7, 20, 512}) {
      EmbedRequest request = Request(Texts());
      request.batch_tokens = tokens;
      EXPECT_EQ(Embed(engine.get(), request), expected) << tokens;
    }
  }
}

TEST(Embed, DimensionsAreCutBeforeTheVectorIsScaled) {
  const auto engine = LoadEngine("tests/data/models/bert_mlm");
  EmbedRequest request = Request({Texts()[0]});
  std::vector<float> whole = Embed(engine.get(), request)[0];
  request.normalize = true;
  request.dimensions = 7;
  whole.resize(7);
  ExpectNear(Embed(engine.get(), request)[0], Normalized(whole));
  request.dimensions = 49;
  EXPECT_THAT(ErrorOf(engine.get(), request),
              AllOf(HasSubstr("dimensions"), HasSubstr("at most 48"),
                    HasSubstr("found 49")));
}

TEST(Embed, M17PaddingOfTheTokenizerFileIsNotPooled) {
  const Vectors expected =
      Embed(LoadEngine("tests/data/models/bert_mlm").get(), Request(Texts()));
  ModelFolder folder("bert_mlm");
  folder.EditJson("tokenizer.json", [](auto& json) {
    json["padding"] = {{"strategy", {{"Fixed", 70}}},
                       {"direction", "Right"},
                       {"pad_to_multiple_of", nullptr},
                       {"pad_id", 0},
                       {"pad_type_id", 0},
                       {"pad_token", "[PAD]"}};
  });
  const auto engine = LoadEngine(folder.path());
  EXPECT_EQ(Embed(engine.get(), Request(Texts())), expected);
  GenerateRequest prompt;
  prompt.prompt = "fox";
  EXPECT_EQ(engine->PromptIds(prompt)->size(), 3u);
}

TEST(Embed, DecodersEmbedToo) {
  EngineOptions options;
  options.cache = CachePrecision::kF32;
  const auto engine = LoadEngine("tests/data/models/llama", options);
  const auto result = engine->Embed(Request(Texts()), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->width, kEmbedWidth);
  EXPECT_THAT(result->notices, ElementsAre(HasSubstr("the last row")));
  EmbedRequest request = Request(Texts());
  const Vectors expected = Embed(engine.get(), request);
  for (const EmbedPooling pooling :
       {EmbedPooling::kLast, EmbedPooling::kMean}) {
    request.pooling = pooling;
    request.batch_tokens = 512;
    const Vectors packed = Embed(engine.get(), request);
    EXPECT_EQ(packed == expected, pooling == EmbedPooling::kLast);
    for (const size_t tokens : {1, 6}) {  // long texts in chunks
      request.batch_tokens = tokens;
      EXPECT_EQ(Embed(engine.get(), request), packed) << tokens;
    }
  }
}

TEST(Embed, ProgressAndCancelling) {
  const auto engine = LoadEngine("tests/data/models/bert_mlm");
  EmbedRequest request = Request(Texts());
  request.batch_tokens = 1;
  std::vector<size_t> done;
  EmbedCallbacks callbacks;
  callbacks.on_progress = [&](size_t texts, size_t total) {
    EXPECT_EQ(total, Texts().size());
    done.push_back(texts);
  };
  ASSERT_TRUE(engine->Embed(request, callbacks).ok());
  EXPECT_THAT(done, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  callbacks.should_cancel = [&] { return done.size() >= 9; };
  EXPECT_EQ(engine->Embed(request, callbacks).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(done.size(), 9u);
  const auto none = engine->Embed(Request({}), {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->vectors.empty());
  request.batch_tokens = 0;
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("batch_tokens"));
}

TEST(Embed, VectorsThatAreNotFiniteAreErrors) {
  ModelFolder folder("bert_mlm");
  folder.EditValues("bert.embeddings.word_embeddings.weight",
                    [](size_t) { return NAN; });
  const auto engine = LoadEngine(folder.path());
  const auto result = engine->Embed(Request({"fox"}), {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(result.status().message(), HasSubstr("not finite"));
}

TEST(Embed, M5EncodersRefuseToContinueText) {
  const auto engine = LoadEngine("tests/data/models/bert_mlm");
  GenerateRequest request;
  request.prompt = "fox";
  for (const absl::Status& status :
       {engine->Generate(request, {}).status(), engine->NewSession().status(),
        engine->Logits({2, 3}).status(), engine->Score({}, {}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("an encoder (bert)"), HasSubstr("Embed")));
  }
}

// Rows of the token embedding in place of ids: the same vectors, bit for bit,
// also where they are more than one chunk of a causal model.
TEST(Embed, VectorsStandForTokens) {
  for (const char* path :
       {"tests/data/models/bert_mlm", "tests/data/models/llama"}) {
    SCOPED_TRACE(path);
    const auto engine = LoadEngine(path);
    const Vectors expected = Embed(engine.get(), Request(Texts()));
    for (const size_t tokens : {3, 512}) {
      EmbedRequest request;
      request.batch_tokens = tokens;
      for (const std::string& text : Texts()) {
        request.vectors.push_back(TokenRows(path, text));
      }
      EXPECT_EQ(Embed(engine.get(), request), expected) << tokens;
    }
  }
}

// Inputs that are no tokens, as of a time series.
TEST(Embed, NoBitOfASeriesDependsOnTheOnesBesideIt) {
  const auto engine = LoadEngine("tests/data/models/bert_mlm");
  EmbedRequest all;
  Vectors expected;
  for (const size_t rows : {5, 1, 17, 17, 40}) {
    std::vector<float> series;
    for (size_t i = 0; i < rows * kEmbedWidth; ++i) {
      series.push_back(std::sin(static_cast<float>(i * rows) * 0.01f));
    }
    EmbedRequest one;
    one.vectors = {series};
    expected.push_back(Embed(engine.get(), one)[0]);
    all.vectors.push_back(series);
  }
  EXPECT_EQ(Embed(engine.get(), all), expected);
  EXPECT_EQ(expected[2], expected[3]);
  EXPECT_NE(expected[0], expected[1]);
}

TEST(Embed, VectorsOfAnotherSizeAreErrors) {
  const auto engine = LoadEngine("tests/data/models/bert_mlm");
  EmbedRequest request;
  request.vectors = {std::vector<float>(kEmbedWidth, 0.5f),
                     std::vector<float>(kEmbedWidth + 1, 0.5f)};
  EXPECT_THAT(ErrorOf(engine.get(), request),
              AllOf(HasSubstr("vectors 1"), HasSubstr("rows of 48"),
                    HasSubstr("found 49")));
  request.vectors[1].clear();
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("found 0"));
  request.vectors[1].assign(1000 * kEmbedWidth, 0.5f);
  EXPECT_THAT(ErrorOf(engine.get(), request),
              AllOf(HasSubstr("at most"), HasSubstr("found 1000")));
  request.vectors.resize(1);
  request.texts = {"a"};
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("found both"));
}

}  // namespace
}  // namespace lanewise
