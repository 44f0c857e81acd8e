// Languages and tasks of translation models: which tokens stand where.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "runtime/language_tokens.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

// Ids of the four spare special tokens of tests/data/models/t5.
constexpr int32_t kFirst = 268;

// That model with other spare tokens, and `around` in place of the </s> that
// its tokenizer puts behind a text.
class Languages {
 public:
  explicit Languages(std::vector<std::string> names,
                     std::vector<std::string> before = {},
                     std::vector<std::string> behind = {"</s>"})
      : folder_("t5") {
    folder_.EditJson("tokenizer.json", [&](nlohmann::json& json) {
      for (nlohmann::json& token : json["added_tokens"]) {
        const size_t index = token["id"].get<size_t>() - kFirst;
        if (index < names.size()) token["content"] = names[index];
      }
      nlohmann::json& post = json["post_processor"];
      auto& single = post["single"] = nlohmann::json::array();
      for (const std::string& name : before) Add(json, name, &single);
      single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
      for (const std::string& name : behind) Add(json, name, &single);
    });
    Generation([](nlohmann::json& json) {
      json = {{"decoder_start_token_id", 1}, {"eos_token_id", 1}};
    });
  }

  template <class Edit>
  void Generation(const Edit& edit) {
    folder_.EditJson("generation_config.json", edit);
  }
  ModelFolder& folder() { return folder_; }

  std::unique_ptr<Engine> Load() const { return LoadEngine(folder_.path()); }

 private:
  static void Add(nlohmann::json& json, const std::string& name,
                  nlohmann::json* single) {
    single->push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    for (const nlohmann::json& token : json["added_tokens"]) {
      if (token["content"] != name) continue;
      json["post_processor"]["special_tokens"][name] = {
          {"id", name}, {"ids", {token["id"]}}, {"tokens", {name}}};
    }
  }

  ModelFolder folder_;
};

TranslateRequest Request(const std::string& source, const std::string& target) {
  TranslateRequest request;
  request.texts = {"It wasn't 42"};
  request.source_language = source;
  request.target_language = target;
  request.options.emplace();
  request.options->max_tokens = 6;
  request.hash_logits = true;
  return request;
}

// The ids of that text.
const Ids kText = {114, 17, 33, 80, 58, 3, 45, 55};

std::string Hash(Engine& engine, const TranslateRequest& request) {
  const auto result = engine.Translate(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->translations.at(0).logits_hash : "";
}

// What the request must be the same as: source ids, start, first token.
std::string HashOf(Engine& engine, const Ids& before, const Ids& behind,
                   int32_t start, std::optional<int32_t> first) {
  TranslateRequest request;
  Ids ids = before;
  ids.insert(ids.end(), kText.begin(), kText.end());
  ids.insert(ids.end(), behind.begin(), behind.end());
  request.ids = {ids};
  request.options.emplace();
  request.options->max_tokens = 6;
  request.options->start_id = start;
  request.options->sampling.forced_first_id = first;
  request.hash_logits = true;
  return Hash(engine, request);
}

std::string Error(Engine& engine, const TranslateRequest& request) {
  const auto result = engine.Translate(request, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  const auto defaults = engine.TranslateDefaults(request);
  EXPECT_EQ(defaults.status(), result.status());
  return std::string(result.status().message());
}

// M2M-100: no language around the text, so the source's comes first.
TEST(TranslateLanguage, M8SourceFirstAndTargetForced) {
  const auto engine = Languages({"__en__", "__de__", "__fr__"}).Load();
  ASSERT_NE(engine, nullptr);
  const std::string expected = HashOf(*engine, {268}, {1}, 1, 270);
  EXPECT_EQ(Hash(*engine, Request("en", "fr")), expected);
  EXPECT_EQ(Hash(*engine, Request("__en__", "__fr__")), expected);
  EXPECT_NE(Hash(*engine, Request("de", "fr")), expected);
  EXPECT_NE(Hash(*engine, Request("en", "de")), expected);
}

// NLLB and mBART-50: the tokenizer's own source language is replaced.
TEST(TranslateLanguage, M8SourceBeforeTheTextIsReplaced) {
  const auto engine =
      Languages({"eng_Latn", "deu_Latn", "zho_Hans"}, {"eng_Latn"}).Load();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Hash(*engine, Request("deu", "zho_Hans")),
            HashOf(*engine, {269}, {1}, 1, 270));
  // The tokenizer's own is what counts where none is named.
  EXPECT_EQ(Hash(*engine, Request("", "zho")),
            HashOf(*engine, {268}, {1}, 1, 270));
}

// mBART: the source's token stands behind, the target's starts the decoder.
TEST(TranslateLanguage, M8TargetStartsTheDecoderWhereALanguageDid) {
  Languages model({"en_XX", "de_DE", "fr_XX"}, {}, {"</s>", "en_XX"});
  model.Generation(
      [](nlohmann::json& json) { json["decoder_start_token_id"] = 270; });
  const auto engine = model.Load();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Hash(*engine, Request("fr", "de")),
            HashOf(*engine, {}, {1, 270}, 269, std::nullopt));
  EXPECT_EQ(Hash(*engine, Request("", "")),
            HashOf(*engine, {}, {1, 268}, 270, std::nullopt));
}

TEST(TranslateLanguage, DecoderPromptsComeBehindTheTarget) {
  const auto engine = Languages({"__en__", "__de__"}).Load();
  ASSERT_NE(engine, nullptr);
  TranslateRequest text = Request("en", "de");
  text.decoder_prompt = "It wasn't 42";
  TranslateRequest ids = Request("en", "de");
  ids.decoder_prompt_ids = {269};
  ids.decoder_prompt_ids.insert(ids.decoder_prompt_ids.end(), kText.begin(),
                                kText.end());
  EXPECT_EQ(Hash(*engine, text), Hash(*engine, ids));
  ids.decoder_prompt_ids = kText;
  EXPECT_NE(Hash(*engine, text), Hash(*engine, ids));
}

// M7: a model of several languages is not left to guess.
TEST(TranslateLanguage, M7MissingAndUnknownLanguagesAreErrors) {
  const auto engine =
      Languages({"zho_Hans", "zho_Hant", "deu_Latn", "eng_Latn"}).Load();
  ASSERT_NE(engine, nullptr);
  const std::string all = "deu_Latn, eng_Latn, zho_Hans, zho_Hant";
  EXPECT_EQ(
      Error(*engine, Request("", "eng_Latn")),
      absl::StrCat("source_language: expected one of ", all, ", found none"));
  EXPECT_EQ(
      Error(*engine, Request("eng_Latn", "")),
      absl::StrCat("target_language: expected one of ", all, ", found none"));
  EXPECT_EQ(Error(*engine, Request("eng_Latn", "xx\n")),
            absl::StrCat("target_language: expected one of ", all,
                         ", found \"xx\\n\""));
  EXPECT_EQ(Error(*engine, Request("eng", "zho")),
            "target_language: expected one language, found \"zho\", which may "
            "be any of zho_Hans, zho_Hant");
  // Forced by the model itself: one direction.
  TranslateRequest forced = Request("eng", "");
  forced.options->sampling.forced_first_id = 270;
  EXPECT_EQ(Hash(*engine, forced), Hash(*engine, Request("eng", "deu")));
  TranslateRequest ids = Request("eng", "deu");
  ids.ids = {kText};
  ids.texts.clear();
  EXPECT_THAT(std::string(engine->Translate(ids, {}).status().message()),
              HasSubstr("source_language: expected with texts only"));
}

// Marian and MADLAD: the target is named before the text.
TEST(TranslateLanguage, MarkersComeBeforeTheText) {
  for (const std::string marker : {">>deu<<", "<2deu>"}) {
    const auto engine = Languages({"__x__", marker}).Load();
    ASSERT_NE(engine, nullptr);
    const std::string expected = HashOf(*engine, {269}, {1}, 1, std::nullopt);
    EXPECT_EQ(Hash(*engine, Request("", "deu")), expected);
    EXPECT_EQ(Hash(*engine, Request("eng", "deu")), expected);
    EXPECT_EQ(Error(*engine, Request("", "fra")),
              "target_language: the model has no languages to choose from, "
              "found \"fra\"");
  }
}

TEST(TranslateLanguage, OnlySpecialTokensAreLanguages) {
  Languages model({"__en__", "en_US", "EN_XX", "en-XX"});
  auto checkpoint = Checkpoint::Open(model.folder().path());
  ASSERT_TRUE(checkpoint.ok());
  auto tokenizer = Tokenizer::Load(**checkpoint);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const LanguageTokens languages(**tokenizer);
  EXPECT_EQ(languages.size(), 2u);
  EXPECT_TRUE(languages.Has(268) && languages.Has(269));
  EXPECT_FALSE(languages.Has(270) || languages.Has(271) || languages.Has(1));
  EXPECT_EQ(languages.Summary(), "__en__, en_US");
  EXPECT_EQ(*languages.Find("f", "en"), 268);  // exact before a beginning
  EXPECT_EQ(*languages.Find("f", "en_US"), 269);
  EXPECT_FALSE(languages.Find("f", "e").ok());
  EXPECT_FALSE(languages.Find("f", "").ok());
}

// The message of a vocabulary that is nothing but languages stays short.
TEST(TranslateLanguage, LongListsAreCut) {
  nlohmann::json json = {
      {"model",
       {{"type", "WordLevel"}, {"vocab", {{"a", 0}}}, {"unk_token", "a"}}}};
  auto& added = json["added_tokens"] = nlohmann::json::array();
  for (int32_t i = 0; i < 676; ++i) {
    const std::string region = {static_cast<char>('A' + i / 26),
                                static_cast<char>('A' + i % 26)};
    added.push_back({{"id", i + 1},
                     {"content", "en_" + region},
                     {"special", true},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  const auto tokenizer = Tokenizer::FromJson(json.dump(), "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const LanguageTokens languages(**tokenizer);
  EXPECT_EQ(languages.size(), 676u);
  EXPECT_TRUE(languages.Has(1) && languages.Has(676) && !languages.Has(0));
  const std::string cut =
      "en_AA, en_AB, en_AC, en_AD, en_AE, en_AF, en_AG, en_AH, ... (676 in "
      "all)";
  EXPECT_EQ(languages.Summary(), cut);
  for (const char* name : {"en", "de"}) {
    EXPECT_THAT(std::string(languages.Find("field", name).status().message()),
                HasSubstr(cut));
  }
}

class TranslateTask : public testing::Test {
 protected:
  TranslateTask() : folder_("t5") {
    folder_.EditJson("config.json", [](nlohmann::json& json) {
      json["task_specific_params"] = {
          {"summarization",
           {{"prefix", "The quick "}, {"max_length", 9}, {"num_beams", 2}}},
          {"translation_en_to_de", {{"prefix", "It wasn't "}}}};
    });
    auto engine = Engine::Load(folder_.path(), {});
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = engine.ok() ? *std::move(engine) : nullptr;
  }

  Translation Translate(const TranslateRequest& request) {
    const auto result = engine_->Translate(request, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->translations.at(0) : Translation();
  }

  ModelFolder folder_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(TranslateTask, GivesPrefixAndSettings) {
  ASSERT_NE(engine_, nullptr);
  TranslateRequest request;
  request.task = "summarization";
  request.texts = {"brown fox"};
  request.hash_logits = true;
  const Translation found = Translate(request);
  EXPECT_LE(found.ids.size(), 8u);
  TranslateRequest by_hand = request;
  by_hand.task.clear();
  by_hand.texts = {"The quick brown fox"};
  const auto defaults = engine_->TranslateDefaults(request);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->max_tokens, 8u);
  EXPECT_EQ(defaults->beams.num_beams, 2);
  EXPECT_EQ(defaults->beams.length_penalty, 0.8);  // of the model
  by_hand.options = *defaults;
  EXPECT_EQ(Translate(by_hand).logits_hash, found.logits_hash);
  EXPECT_EQ(Translate(by_hand).source_tokens, found.source_tokens);
  // Without being asked for, no task counts.
  by_hand.options.reset();
  EXPECT_EQ(engine_->TranslateDefaults(by_hand)->max_tokens, 23u);
  EXPECT_EQ(engine_->TranslateDefaults(by_hand)->beams.num_beams, 4);
}

TEST_F(TranslateTask, IsFoundByItsLanguages) {
  ASSERT_NE(engine_, nullptr);
  TranslateRequest named;
  named.texts = {"42"};
  named.task = "translation_en_to_de";
  named.hash_logits = true;
  TranslateRequest languages = named;
  languages.task.clear();
  languages.source_language = "en";
  languages.target_language = "de";
  EXPECT_EQ(Translate(languages).logits_hash, Translate(named).logits_hash);
  languages.task = "translation_en_to_de";
  EXPECT_EQ(Translate(languages).logits_hash, Translate(named).logits_hash);
  languages.task = "summarization";
  EXPECT_THAT(Error(*engine_, languages), HasSubstr("task: expected none or"));
  languages.task.clear();
  languages.target_language = "fr";
  EXPECT_THAT(Error(*engine_, languages), HasSubstr("no languages"));
  named.task = "none";
  EXPECT_EQ(Error(*engine_, named),
            "task: expected one of summarization, translation_en_to_de, found "
            "\"none\"");
}

}  // namespace
}  // namespace lanewise
