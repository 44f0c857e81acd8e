// Malformed and unusual tokenizer.json files: each is a status that names the
// file and the field, or loads.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

// A BPE tokenizer of a few characters.
json Base() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "<s>", "special": true,
                      "normalized": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": null,
    "model": {"type": "BPE", "unk_token": null,
              "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3},
              "merges": [["a", "b"]]}})");
}

absl::Status LoadStatus(const json& file) {
  return Tokenizer::FromJson(file.dump(), "dir/tokenizer.json").status();
}

// The file with one value changed does not load; the message names the field.
void ExpectError(const char* pointer, const json& value,
                 absl::string_view message) {
  json file = Base();
  file[json::json_pointer(pointer)] = value;
  const absl::Status status = LoadStatus(file);
  EXPECT_FALSE(status.ok()) << pointer << " = " << value;
  EXPECT_TRUE(absl::StrContains(status.message(), "dir/tokenizer.json"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
}

TEST(TokenizerJson, T26NullStagesAreLegal) {
  const auto tokenizer =
      Tokenizer::FromJson(Base().dump(), "dir/tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("abba", {}), Ids({3, 2, 1}));
  EXPECT_EQ((*tokenizer)->Decode(Ids{3, 2, 1, -1, 99}, {}), "ab b a");
  EXPECT_EQ((*tokenizer)->vocab_size(), 4u);
  EXPECT_EQ((*tokenizer)->TokenId("ab"), 3);
  EXPECT_EQ((*tokenizer)->TokenId("c"), std::nullopt);
  EXPECT_EQ((*tokenizer)->TokenText(3), "ab");
  EXPECT_EQ((*tokenizer)->TokenText(-1), "");
  EXPECT_EQ((*tokenizer)->TokenText(4), "");
  EXPECT_TRUE((*tokenizer)->IsSpecial(0));
  EXPECT_FALSE((*tokenizer)->IsSpecial(1));
  EXPECT_EQ((*tokenizer)->bos_id(), std::nullopt);
}

TEST(TokenizerJson, AbsentStagesAreLegal) {
  json file = Base();
  for (const char* key :
       {"truncation", "padding", "normalizer", "pre_tokenizer",
        "post_processor", "decoder", "added_tokens"}) {
    file.erase(key);
  }
  EXPECT_TRUE(LoadStatus(file).ok()) << LoadStatus(file);
}

TEST(TokenizerJson, NotJson) {
  for (const char* text : {"", "{", "[1,2", "nul", "{\"a\":1}x", "\xFF"}) {
    const auto status = Tokenizer::FromJson(text, "dir/tokenizer.json");
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_TRUE(
        absl::StrContains(status.status().message(), "dir/tokenizer.json"));
  }
  for (const char* text : {"[]", "1", "null", "\"x\"", "{}"}) {
    EXPECT_FALSE(Tokenizer::FromJson(text, "dir/tokenizer.json").ok()) << text;
  }
}

TEST(TokenizerJson, EveryCutIsAnError) {
  const std::string text = Base().dump();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(
        Tokenizer::FromJson(absl::string_view(text).substr(0, size), "f").ok());
  }
}

TEST(TokenizerJson, EveryFieldWithEveryWrongType) {
  // Whatever stands in the place of a value, nothing throws or crashes.
  const json flat = Base().flatten();
  for (const auto& item : flat.items()) {
    for (const json& value :
         {json(nullptr), json(true), json(-1), json(1e300), json("x"),
          json::array(), json::object(), json(uint64_t{1} << 63),
          json::array({1, "x", nullptr})}) {
      json file = Base();
      file[json::json_pointer(item.key())] = value;
      (void)LoadStatus(file);
    }
  }
  for (const char* name :
       {"t5", "bert_truncpad", "llama2", "clip", "roberta"}) {
    const json whole = json::parse(
        ReadTestFile(TestDataPath(std::string(name) + "/tokenizer.json")));
    for (const char* key :
         {"normalizer", "pre_tokenizer", "post_processor", "decoder",
          "truncation", "padding", "added_tokens"}) {
      const json values = whole.at(key).flatten();
      for (const auto& item : values.items()) {
        json file = Base();
        file[key] = whole[key];
        for (const json& value : {json(nullptr), json(-7), json("x"),
                                  json::array({1}), json::object()}) {
          file[key][json::json_pointer(item.key())] = value;
          (void)LoadStatus(file);
        }
      }
    }
  }
}

TEST(TokenizerJson, Vocabulary) {
  ExpectError("/model/vocab", json::array({"a"}),
              "model.vocab: expected an object");
  ExpectError("/model/vocab", 3, "model.vocab: expected an object");
  ExpectError("/model/vocab/a", "x", "model.vocab.a: expected an id");
  ExpectError("/model/vocab/a", -1, "model.vocab.a: expected an id");
  ExpectError("/model/vocab/a", 1.5, "model.vocab.a: expected an id");
  ExpectError("/model/vocab/a", int64_t{1} << 40, "model.vocab.a: expected an");
  ExpectError("/model/vocab/a", 16777215, "model.vocab: expected ids below");
  ExpectError("/model/vocab/a", 2, "id 2 has two tokens");
  ExpectError("/model", nullptr, "model: expected an object");
}

TEST(TokenizerJson, Merges) {
  ExpectError("/model/merges", nullptr, "model.merges: expected an array");
  ExpectError("/model/merges/0", json::array({"a", "c"}), "model.merges[0]");
  ExpectError("/model/merges/0", json::array({"b", "a"}), "model.merges[0]");
  ExpectError("/model/merges/0", json::array({"a"}), "model.merges[0]");
  ExpectError("/model/merges/0", "a  b", "model.merges[0]");
  ExpectError("/model/merges/0", "ab", "model.merges[0]");
  ExpectError("/model/merges/0", 5, "model.merges[0]");
  ExpectError("/model/unk_token", "<unk>", "unk_token");
  ExpectError("/model/dropout", 0.1, "model.dropout");
}

TEST(TokenizerJson, MergesAsOneString) {
  json file = Base();
  file["model"]["merges"] = json::array({"#version: 0.2", "a b"});
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("ab", {}), Ids({3}));
}

TEST(TokenizerJson, ModelTypeMayBeMissing) {
  json file = Base();
  file["model"].erase("type");
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("ab", {}), Ids({3}));
}

TEST(TokenizerJson, UnknownStagesAreNamed) {
  const json stage = {{"type", "Shiny"}};
  for (const char* key :
       {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}) {
    ExpectError(absl::StrCat("/", key).c_str(), stage,
                absl::StrCat(key, ": a stage of type \"Shiny\""));
  }
  ExpectError("/normalizer",
              {{"type", "Sequence"},
               {"normalizers", json::array({{{"type", "NFC"}}, stage})}},
              "normalizer.normalizers[1]: a stage of type \"Shiny\"");
}

TEST(TokenizerJson, SequencesWithinSequencesAreLimited) {
  json stage = {{"type", "NFC"}};
  for (int i = 0; i < 100; ++i) {
    stage = {{"type", "Sequence"}, {"normalizers", json::array({stage})}};
  }
  ExpectError("/normalizer", stage, "at most 8");
}

TEST(TokenizerJson, T31RegexThatDoesNotCompile) {
  for (const char* pattern : {"(", "[a", "a{2", "\\", "(?<n", "x)", "\\p{Foo}",
                              "(?~a)", "(a)(?(1)b)"}) {
    json file = Base();
    file["pre_tokenizer"] = {{"type", "Split"},
                             {"pattern", {{"Regex", pattern}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
    const absl::Status status = LoadStatus(file);
    if (std::string(pattern) == "a{2") {
      EXPECT_TRUE(status.ok()) << status;  // a literal brace
      continue;
    }
    EXPECT_FALSE(status.ok()) << pattern;
    EXPECT_TRUE(absl::StrContains(status.message(), "pre_tokenizer.pattern"))
        << status;
  }
}

TEST(TokenizerJson, T31ReplaceWithAClass) {
  json file = Base();
  file["normalizer"] = {{"type", "Replace"},
                        {"pattern", {{"Regex", "\\p{S}"}}},
                        {"content", "b"}};
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("a$a+", {}), Ids({3, 3}));
}

TEST(TokenizerJson, RegexWithoutEndIsAStatus) {
  json file = Base();
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(a+)+$"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode(std::string(40, 'a') + "b", {});
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kResourceExhausted)
      << ids.status();
}

TEST(TokenizerJson, T10EmptyCharacterMapIsNoStage) {
  json file = Base();
  for (const json& map : {json(""), json(nullptr)}) {
    file["normalizer"] = {{"type", "Precompiled"},
                          {"precompiled_charsmap", map}};
    EXPECT_TRUE(LoadStatus(file).ok()) << LoadStatus(file);
  }
  ExpectError("/normalizer",
              {{"type", "Precompiled"}, {"precompiled_charsmap", "!!"}},
              "precompiled_charsmap: expected base64");
  ExpectError("/normalizer",
              {{"type", "Precompiled"}, {"precompiled_charsmap", "/////w=="}},
              "precompiled_charsmap");
}

TEST(TokenizerJson, AddedTokens) {
  ExpectError("/added_tokens/0/id", -1, "added_tokens[0].id");
  ExpectError("/added_tokens/0/id", int64_t{1} << 33, "added_tokens[0].id");
  ExpectError("/added_tokens/0/content", 3, "added_tokens[0].content");
  ExpectError("/added_tokens/0/content", std::string(5000, 'x'),
              "added_tokens");
  // The id of another token.
  ExpectError("/added_tokens/0",
              {{"id", 1}, {"content", "<x>"}, {"special", true}},
              "added_tokens[0].id");
}

TEST(TokenizerJson, PostProcessor) {
  ExpectError(
      "/post_processor",
      {{"type", "TemplateProcessing"},
       {"single",
        json::array({{{"SpecialToken", {{"id", "<x>"}, {"type_id", 0}}}}})},
       {"pair", json::array()},
       {"special_tokens", json::object()}},
      "post_processor.special_tokens.<x>.ids");
  ExpectError(
      "/post_processor",
      {{"type", "TemplateProcessing"},
       {"single", json::array({{{"Sequence", {{"id", "C"}, {"type_id", 0}}}}})},
       {"pair", json::array()}},
      "expected A or B");
  ExpectError("/post_processor",
              {{"type", "RobertaProcessing"}, {"sep", {"</s>"}}},
              "post_processor.sep");
}

TEST(TokenizerJson, TruncationAndPadding) {
  ExpectError("/truncation", {{"max_length", -1}}, "truncation.max_length");
  ExpectError("/truncation", {{"max_length", 4}, {"strategy", "Best"}},
              "truncation.strategy");
  ExpectError("/padding", {{"strategy", {{"Fixed", "x"}}}},
              "padding.strategy.Fixed");
  ExpectError("/padding", {{"strategy", {{"Fixed", int64_t{1} << 50}}}},
              "padding.strategy.Fixed");
  ExpectError("/padding", {{"strategy", "Longest"}}, "padding.strategy");
}

// What a small file makes of a text stays small.
TEST(TokenizerJson, PaddingAndTemplatesAreBounded) {
  const json fixed = {{"strategy", {{"Fixed", 1000000000}}}};
  ExpectError("/padding", fixed, "padding.strategy.Fixed");
  const json multiple = {{"strategy", "BatchLongest"},
                         {"pad_to_multiple_of", 1000000000}};
  ExpectError("/padding", multiple, "pad_to_multiple_of");
  json parts = json::array();
  for (int i = 0; i < 300; ++i) {
    parts.push_back({{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}});
  }
  const json post = {
      {"type", "TemplateProcessing"},
      {"single", parts},
      {"pair", json::array()},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", std::vector<int>(300, 0)}}}}}};
  ExpectError("/post_processor", post, "at most 65536 tokens");
}

TEST(TokenizerJson, Unigram) {
  json file = Base();
  file["added_tokens"] = json::array();
  file["model"] = {{"type", "Unigram"},
                   {"unk_id", 0},
                   {"vocab", json::array({{"<unk>", 0.0}, {"a", -1.0}})}};
  EXPECT_TRUE(LoadStatus(file).ok()) << LoadStatus(file);
  const auto bad = [&](const char* pointer, const json& value) {
    json changed = file;
    changed[json::json_pointer(pointer)] = value;
    return LoadStatus(changed);
  };
  EXPECT_FALSE(bad("/model/unk_id", 2).ok());
  EXPECT_FALSE(bad("/model/unk_id", -1).ok());
  EXPECT_FALSE(bad("/model/vocab/1", json::array({"a"})).ok());
  EXPECT_FALSE(bad("/model/vocab/1", json::array({"a", "b"})).ok());
  EXPECT_FALSE(bad("/model/vocab", json::object()).ok());
  // Without an unknown token an unknown character is an error of the text.
  file["model"].erase("unk_id");
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(*(*tokenizer)->Encode("aa", {}), Ids({1, 1}));
  EXPECT_EQ((*tokenizer)->Encode("ab", {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Stages that together let a text grow without end, or take it.
TEST(TokenizerJson, StagesCannotGrowATextWithoutEnd) {
  const json tenfold = {{"type", "Replace"},
                        {"pattern", {{"String", "a"}}},
                        {"content", "aaaaaaaaaa"}};
  json file = Base();
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", json(12, tenfold)}};
  file["decoder"] = {{"type", "Sequence"}, {"decoders", json(12, tenfold)}};
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "f");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("aaaa", {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_LE((*tokenizer)->Decode(Ids{1}, {}).size(), size_t{2} << 20);
}

TEST(TokenizerJson, StagesAreLimited) {
  const json stage = {{"type", "NFC"}};
  json inner = {{"type", "Sequence"}, {"normalizers", json(100, stage)}};
  ExpectError("/normalizer",
              {{"type", "Sequence"}, {"normalizers", json(10, inner)}},
              "at most 512 stages");
  ExpectError("/normalizer",
              {{"type", "Prepend"}, {"prepend", std::string(2000, 'a')}},
              "prepend: expected at most 1024 bytes");
  ExpectError("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}},
              "replacement: expected one character");
}

TEST(TokenizerJson, MessagesCutKeysOfTheFile) {
  json file = Base();
  file["model"]["vocab"][std::string(50'000, 'y')] = -1;
  const absl::Status status = LoadStatus(file);
  EXPECT_FALSE(status.ok());
  EXPECT_LT(status.message().size(), 1000u) << status;
}

}  // namespace
}  // namespace lanewise
