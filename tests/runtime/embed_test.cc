// Vectors of texts, against scalar pooling of the rows that the executor gives.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/context.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Vectors = std::vector<std::vector<float>>;

constexpr size_t kWidth = 48;  // of bert_mlm and of llama

const std::vector<std::string>& Texts() {
  static const auto* const texts = new std::vector<std::string>{
      "The quick brown fox",
      "",
      "It's 42, isn't it? The quick brown fox jumps over the lazy dog, again "
      "and again, until it is tired.",
      "a",
      "It's 42, isn't it?",
      "\xE6\xAD broken bytes",
      "fox fox fox"};
  return *texts;
}

std::unique_ptr<Engine> LoadEngine(const std::string& path,
                                   EngineOptions options = {}) {
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

EmbedRequest Request(std::vector<std::string> texts) {
  EmbedRequest request;
  request.texts = std::move(texts);
  return request;
}

Vectors Embed(Engine* engine, const EmbedRequest& request) {
  const auto result = engine->Embed(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  Vectors vectors;
  for (size_t i = 0; i < request.texts.size(); ++i) {
    vectors.emplace_back(result->vectors.begin() + i * result->width,
                         result->vectors.begin() + (i + 1) * result->width);
  }
  return vectors;
}

std::string ErrorOf(Engine* engine, const EmbedRequest& request) {
  const auto result = engine->Embed(request, {});
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

// Rows of a text as the encoder in `path` gives them, [ids][kWidth].
Vectors HiddenRows(const std::string& path, const std::string& text) {
  const auto context = *Context::Create({});
  const auto checkpoint = *Checkpoint::Open(path);
  const auto model = *Model::Load(*checkpoint, *context, {});
  const auto executor = *Executor::Create(*model, *context, {});
  EncodeOptions encode;
  encode.truncate = encode.pad = false;
  const auto ids = *(*Tokenizer::Load(*checkpoint))->Encode(text, encode);
  std::vector<float> hidden(ids.size() * kWidth);
  Executor::Entry entry{ids, nullptr, Executor::Logits::kNone};
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  EXPECT_TRUE(executor->Forward({&entry, 1}, outputs).ok());
  Vectors rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows.emplace_back(hidden.begin() + i * kWidth,
                      hidden.begin() + (i + 1) * kWidth);
  }
  return rows;
}

std::vector<float> Pooled(EmbedPooling pooling, const Vectors& rows) {
  std::vector<float> out;
  for (size_t c = 0; c < kWidth; ++c) {
    double sum = 0, weighted = 0, max = -INFINITY;
    for (size_t r = 0; r < rows.size(); ++r) {
      sum += rows[r][c];
      weighted += static_cast<double>(r + 1) * rows[r][c];
      max = std::fmax(max, rows[r][c]);
    }
    const double n = static_cast<double>(rows.size());
    double value = sum / n;
    if (pooling == EmbedPooling::kFirst) value = rows.front()[c];
    if (pooling == EmbedPooling::kLast) value = rows.back()[c];
    if (pooling == EmbedPooling::kMax) value = max;
    if (pooling == EmbedPooling::kMeanSqrtLength) value = sum / std::sqrt(n);
    if (pooling == EmbedPooling::kWeightedMean) {
      value = weighted / (n * (n + 1) / 2);
    }
    out.push_back(static_cast<float>(value));
  }
  return out;
}

std::vector<float> Normalized(std::vector<float> x) {
  double squares = 0;
  for (const float v : x) squares += double{v} * v;
  for (float& v : x) v = static_cast<float>(v / std::sqrt(squares));
  return x;
}

void ExpectNear(const std::vector<float>& found,
                const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 2e-6 * (1 + std::fabs(expected[i])))
        << i;
  }
}

// A copy of bert_mlm as a sentence embedding model.
class SentenceModel : public ModelFolder {
 public:
  SentenceModel() : ModelFolder("bert_mlm") {}

  void Pooling(const std::string& json) {
    AddFolder("1_Pooling");
    Write("1_Pooling/config.json", json);
    Add("Pooling", "1_Pooling");
  }
  void Add(const std::string& type, const std::string& folder) {
    modules_.push_back(
        {{"type", "sentence_transformers.models." + type}, {"path", folder}});
    Write("modules.json", modules_.dump());
  }
  void AddFolder(const std::string& name) {
    std::filesystem::create_directory(path() + "/" + name);
  }
  // weights [out, kWidth]: value(row, column); biases value(row, kWidth).
  void Dense(size_t out, const std::function<float(size_t, size_t)>& value,
             const std::string& activation) {
    AddFolder("2_Dense");
    nlohmann::json config = {{"in_features", kWidth},
                             {"out_features", out},
                             {"bias", true},
                             {"activation_function", activation}};
    Write("2_Dense/config.json", config.dump());
    std::vector<float> data;
    for (size_t r = 0; r < out; ++r) {
      for (size_t c = 0; c < kWidth; ++c) data.push_back(value(r, c));
    }
    for (size_t r = 0; r < out; ++r) data.push_back(value(r, kWidth));
    const size_t weights = out * kWidth * 4;
    nlohmann::json header;
    header["linear.weight"] = {{"dtype", "F32"},
                               {"shape", {out, kWidth}},
                               {"data_offsets", {0, weights}}};
    header["linear.bias"] = {{"dtype", "F32"},
                             {"shape", {out}},
                             {"data_offsets", {weights, weights + out * 4}}};
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string bytes(reinterpret_cast<const char*>(&length), 8);
    bytes += text;
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size() * 4);
    Write("2_Dense/model.safetensors", bytes);
    Add("Dense", "2_Dense");
  }

 private:
  nlohmann::json modules_ = nlohmann::json::array(
      {{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}}});
};

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

TEST(Embed, M16DenseLayersFollowPooling) {
  SentenceModel folder;
  folder.Pooling(R"({"pooling_mode_cls_token": true})");
  const auto value = [](size_t row, size_t column) {
    return 0.01f * static_cast<float>((row * 7 + column * 3) % 23) - 0.1f;
  };
  folder.Dense(5, value, "torch.nn.modules.activation.Tanh");
  folder.Add("Normalize", "3_Normalize");
  const auto engine = LoadEngine(folder.path());
  const Vectors found = Embed(engine.get(), Request(Texts()));
  EmbedRequest plain = Request(Texts());
  plain.normalize = false;
  const Vectors unscaled = Embed(engine.get(), plain);
  for (size_t i = 0; i < Texts().size(); ++i) {
    const auto rows = HiddenRows(folder.path(), Texts()[i]);
    std::vector<float> expected;
    for (size_t r = 0; r < 5; ++r) {
      double sum = value(r, kWidth);
      for (size_t c = 0; c < kWidth; ++c) sum += value(r, c) * rows[0][c];
      expected.push_back(static_cast<float>(std::tanh(sum)));
    }
    ExpectNear(unscaled[i], expected);
    ExpectNear(found[i], Normalized(expected));
  }
}

TEST(Embed, SeveralPoolingsStandSideBySide) {
  SentenceModel folder;
  folder.Pooling(R"({"pooling_mode_mean_tokens": true,
                     "pooling_mode_cls_token": true})");
  const auto engine = LoadEngine(folder.path());
  const auto found = Embed(engine.get(), Request({Texts()[0]}))[0];
  const auto rows = HiddenRows(folder.path(), Texts()[0]);
  std::vector<float> expected = Pooled(EmbedPooling::kFirst, rows);
  const auto mean = Pooled(EmbedPooling::kMean, rows);
  expected.insert(expected.end(), mean.begin(), mean.end());
  ExpectNear(found, expected);
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

TEST(Embed, PromptsStandBeforeTheText) {
  SentenceModel folder;
  folder.Pooling(R"({"pooling_mode_mean_tokens": true})");
  folder.Write("config_sentence_transformers.json",
               R"({"prompts": {"query": "find: ", "passage": ""},
                   "default_prompt_name": "query"})");
  const auto engine = LoadEngine(folder.path());
  EmbedRequest request = Request({"fox"});
  request.prompt = "";
  const auto bare = Embed(engine.get(), request);
  request.texts = {"find: fox"};
  const auto spelled = Embed(engine.get(), request);
  EXPECT_NE(bare, spelled);
  request = Request({"fox"});
  EXPECT_EQ(Embed(engine.get(), request), spelled);
  request.prompt_name = "query";
  EXPECT_EQ(Embed(engine.get(), request), spelled);
  request.prompt_name = "passage";
  EXPECT_EQ(Embed(engine.get(), request), bare);
  request.prompt_name = "nothing";
  EXPECT_THAT(ErrorOf(engine.get(), request),
              AllOf(HasSubstr("passage, query"), HasSubstr("nothing")));
  request.prompt = "find: ";
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("found both"));
}

TEST(Embed, RowsOfThePromptAreLeftOutWhereTheFilesSaySo) {
  SentenceModel folder;
  folder.Pooling(
      R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  const auto engine = LoadEngine(folder.path());
  EmbedRequest request = Request({"fox"});
  request.prompt = "find: ";
  Vectors rows = HiddenRows(folder.path(), "find: fox");
  // [CLS] and what "find:" is made of; the last row is [SEP].
  const size_t prompt = HiddenRows(folder.path(), "find: ").size() - 1;
  rows.erase(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(prompt));
  ExpectNear(Embed(engine.get(), request)[0],
             Pooled(EmbedPooling::kMean, rows));
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

// What bounds a text, from the strongest to the weakest.
TEST(Embed, A17LongTextsAreCutOrRefusedWithBothNumbers) {
  SentenceModel folder;
  std::string text = "fox";
  for (int i = 1; i < 100; ++i) text += " fox";
  const auto limit = [&] {
    const auto engine = LoadEngine(folder.path());
    const auto result = engine->Embed(Request({"a", text}), {});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->truncated, 1u);
    EXPECT_EQ(result->tokens[1], result->max_tokens);
    EXPECT_THAT(result->notices,
                Contains(HasSubstr("1 of 2 texts had more than")));
    EmbedRequest strict = Request({"a", text});
    strict.truncate = false;
    EXPECT_THAT(ErrorOf(engine.get(), strict),
                AllOf(HasSubstr("text 1"),
                      HasSubstr(absl::StrCat("at most ", result->max_tokens)),
                      HasSubstr("found 102")));
    return result->max_tokens;
  };
  EXPECT_EQ(limit(), 80u);  // positions; model_max_length is 128
  folder.EditJson("tokenizer.json", [](auto& json) {
    json["truncation"] = {{"max_length", 30},
                          {"strategy", "LongestFirst"},
                          {"stride", 0},
                          {"direction", "Right"}};
  });
  EXPECT_EQ(limit(), 80u);
  folder.Write("tokenizer_config.json", R"({"model_max_length": 1e30})");
  EXPECT_EQ(limit(), 30u);
  folder.Write("tokenizer_config.json", R"({"model_max_length": 40})");
  EXPECT_EQ(limit(), 40u);
  folder.Write("sentence_bert_config.json", R"({"max_seq_length": 50})");
  EXPECT_EQ(limit(), 50u);
  const auto engine = LoadEngine(folder.path());
  std::string cut = "fox";  // a token each, and two around them
  for (int i = 1; i < 48; ++i) cut += " fox";
  EXPECT_EQ(Embed(engine.get(), Request({text})),
            Embed(engine.get(), Request({cut})));
  folder.Write("tokenizer_config.json", R"({"truncation_side": "left"})");
  const auto left = LoadEngine(folder.path());
  EXPECT_EQ(Embed(left.get(), Request({"a b c " + text})),
            Embed(left.get(), Request({cut})));
}

TEST(Embed, DecodersEmbedToo) {
  EngineOptions options;
  options.cache = CachePrecision::kF32;
  const auto engine = LoadEngine("tests/data/models/llama", options);
  const auto result = engine->Embed(Request(Texts()), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->width, kWidth);
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

TEST(Embed, FilesThatCannotBeFollowedAreNamedWhenEmbeddingIsAskedFor) {
  const auto message = [](const std::function<void(SentenceModel*)>& edit) {
    SentenceModel folder;
    edit(&folder);
    const auto engine = LoadEngine(folder.path());
    return ErrorOf(engine.get(), Request({"a"}));
  };
  const auto zeros = [](size_t, size_t) { return 0.0f; };
  const std::string cls = R"({"pooling_mode_cls_token": true})";
  EXPECT_THAT(message([&](auto* f) { f->Add("LSTM", "1_LSTM"); }),
              AllOf(HasSubstr("module 1"), HasSubstr("LSTM")));
  EXPECT_THAT(message([&](auto* f) { f->Pooling("{}"); }),
              AllOf(HasSubstr("1_Pooling/config.json"), HasSubstr("none")));
  EXPECT_THAT(
      message([&](auto* f) { f->Pooling(R"({"pooling_mode": "median"})"); }),
      AllOf(HasSubstr("lasttoken"), HasSubstr("median")));
  EXPECT_THAT(message([&](auto* f) { f->Add("Pooling", "../x"); }),
              HasSubstr(".."));
  EXPECT_THAT(message([&](auto* f) {
                f->Pooling(cls);
                f->Dense(4, zeros, "torch.nn.Hardshrink");
              }),
              AllOf(HasSubstr("activation_function"), HasSubstr("Hardshrink")));
  EXPECT_THAT(message([&](auto* f) {
                f->Pooling(cls);
                f->Dense(4, zeros, "torch.nn.Tanh");
                f->Remove("2_Dense/model.safetensors");
              }),
              AllOf(HasSubstr("expected safetensors"), HasSubstr("2_Dense")));
  EXPECT_THAT(message([&](auto* f) {
                f->Pooling(R"({"pooling_mode_cls_token": true,
                               "pooling_mode_max_tokens": true})");
                f->Dense(4, zeros, "torch.nn.Tanh");
              }),
              AllOf(HasSubstr("in_features"), HasSubstr("expected 96"),
                    HasSubstr("found 48")));
  EXPECT_THAT(message([&](auto* f) {
                f->Pooling(cls);
                f->Dense(4, zeros, "torch.nn.Tanh");
                f->EditJson("2_Dense/config.json",
                            [](auto& json) { json["out_features"] = 6; });
              }),
              AllOf(HasSubstr("linear.weight"), HasSubstr("[6, 48]"),
                    HasSubstr("[4, 48]")));
  EXPECT_THAT(message([&](auto* f) {
                f->Add("Normalize", "");
                f->Pooling(cls);
              }),
              HasSubstr("nothing after Normalize"));
  EXPECT_THAT(message([&](auto* f) {
                f->Write("sentence_bert_config.json",
                         R"({"max_seq_length": 2})");
              }),
              AllOf(HasSubstr("a limit of 2"), HasSubstr("around it")));
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

}  // namespace
}  // namespace lanewise
