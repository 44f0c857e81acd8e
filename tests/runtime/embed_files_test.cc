// Embedding models as their files describe them: modules, prompts, lengths.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/runtime/embed_reference.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(EmbedFiles, M16DenseLayersFollowPooling) {
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
      double sum = value(r, kEmbedWidth);
      for (size_t c = 0; c < kEmbedWidth; ++c) sum += value(r, c) * rows[0][c];
      expected.push_back(static_cast<float>(std::tanh(sum)));
    }
    ExpectNear(unscaled[i], expected);
    ExpectNear(found[i], Normalized(expected));
  }
}

TEST(EmbedFiles, SeveralPoolingsStandSideBySide) {
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

TEST(EmbedFiles, PromptsStandBeforeTheText) {
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

TEST(EmbedFiles, RowsOfThePromptAreLeftOutWhereTheFilesSaySo) {
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

// What bounds a text, from the strongest to the weakest.
TEST(EmbedFiles, A17LongTextsAreCutOrRefusedWithBothNumbers) {
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

TEST(EmbedFiles, FilesThatCannotBeFollowedAreNamedWhenEmbeddingIsAskedFor) {
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

// Any value at any place of these files is an error or a vector, never a crash.
TEST(EmbedFiles, HostileValuesAreErrors) {
  const std::vector<std::string> files = {"modules.json",
                                          "1_Pooling/config.json",
                                          "2_Dense/config.json",
                                          "config_sentence_transformers.json",
                                          "sentence_bert_config.json",
                                          "tokenizer_config.json"};
  const std::vector<std::string> values = {
      "null", "true",          "-1", "0",  "1e300",    "18446744073709551615",
      "\"\"", "\"../../etc\"", "[]", "{}", "[[[[]]]]", "{\"type\": {}}"};
  SentenceModel folder;
  folder.Pooling(R"({"pooling_mode_cls_token": true})");
  folder.Dense(
      4, [](size_t, size_t) { return 0.5f; }, "torch.nn.Tanh");
  folder.Write(
      "config_sentence_transformers.json",
      R"({"prompts": {"query": "q"}, "default_prompt_name": "query"})");
  folder.Write("sentence_bert_config.json", R"({"max_seq_length": 60})");
  size_t errors = 0, runs = 0;
  for (const std::string& file : files) {
    const std::string before = folder.Read(file);
    const nlohmann::json json = nlohmann::json::parse(before);
    std::vector<std::string> variants = values;
    for (size_t cut = 0; cut < before.size(); cut += 5) {
      variants.push_back(before.substr(0, cut));
    }
    const nlohmann::json& object = json.is_array() ? json.back() : json;
    for (const auto& entry : object.items()) {
      for (const std::string& value : values) {
        nlohmann::json edited = object;
        edited[entry.key()] = nlohmann::json::parse(value);
        if (json.is_array()) {
          nlohmann::json list = json;
          list.back() = edited;
          edited = list;
        }
        variants.push_back(edited.dump());
      }
    }
    for (const std::string& variant : variants) {
      folder.Write(file, variant);
      const auto engine = Engine::Load(folder.path(), {});
      ++runs;
      if (!engine.ok() || !(*engine)->Embed(Request({"fox"}), {}).ok()) {
        ++errors;
      }
    }
    folder.Write(file, before);
  }
  EXPECT_TRUE(LoadEngine(folder.path())->Embed(Request({"fox"}), {}).ok());
  EXPECT_GT(errors, runs / 2);
  EXPECT_LT(errors, runs);
}

TEST(EmbedFiles, LowercaseIsNamedWhereItIsIgnored) {
  SentenceModel folder;
  folder.Write("sentence_bert_config.json", R"({"do_lower_case": true})");
  const auto engine = LoadEngine(folder.path());
  const auto result = engine->Embed(Request({"a"}), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->notices, testing::Contains(HasSubstr("do_lower_case")));
}

}  // namespace
}  // namespace lanewise
