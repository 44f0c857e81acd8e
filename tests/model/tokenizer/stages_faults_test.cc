// Where stages of other programs, or the library that runs patterns here, give
// something else than the reference (tokenizers 0.23.3, whose patterns are
// Oniguruma's).
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

// A tokenizer whose tokens are single characters.
json Characters() {
  json vocabulary = {{"?", 0}};
  for (const char* token : {"\xE2\x96\x81", "a", "b", "x", " ", "\n"}) {
    vocabulary[token] = vocabulary.size();
  }
  return {{"added_tokens", json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "?"},
            {"vocab", vocabulary},
            {"merges", json::array()}}}};
}

Strings Tokens(const json& file, const std::string& text) {
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "test");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return {};
  const auto ids = (*tokenizer)->Encode(text, {});
  EXPECT_TRUE(ids.ok()) << ids.status();
  Strings tokens;
  for (const int32_t id : *ids) tokens.push_back((*tokenizer)->TokenText(id));
  return tokens;
}

// The characters of a text that a pattern matches.
Strings Matches(const std::string& pattern, const std::string& text) {
  json file = Characters();
  file["model"] = {{"type", "WordLevel"}, {"vocab", {{"?", 0}}}};
  file["model"]["unk_token"] = "?";
  file["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}};
  const auto tokenizer = Tokenizer::FromJson(file.dump(), "test");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  Strings matched;
  if (!tokenizer.ok()) return matched;
  // What the pattern takes away leaves no token.
  for (size_t pos = 0; pos < text.size();) {
    size_t end = pos + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
    const std::string character = text.substr(pos, end - pos);
    const auto ids = (*tokenizer)->Encode(character, {});
    EXPECT_TRUE(ids.ok()) << ids.status();
    if (ids->empty()) matched.push_back(character);
    pos = end;
  }
  return matched;
}

TEST(StagesFaults, T31WordCharactersOfLatinOne) {
  const std::string text =
      "\xC2\xB2\xC2\xB3\xC2\xB9\xC2\xBC\xC2\xBD\xC2\xBE\xC2\xB7-";
  EXPECT_EQ(Matches("\\w", text).size(), 6u);
  EXPECT_EQ(Matches("\\W", text), Strings({"\xC2\xB7", "-"}));
  EXPECT_EQ(Matches("[\\w]", text).size(), 0u);
}

TEST(StagesFaults, T31WordsEndBehindTheirMarks) {
  json file = Characters();
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "\\b"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  file["model"] = {
      {"type", "WordLevel"},
      {"unk_token", "?"},
      {"vocab", {{"?", 0}, {"\xE0\xA4\xA8\xE0\xA4\xBF", 1}, {" ", 2}}}};
  const std::string word = "\xE0\xA4\xA8\xE0\xA4\xBF";
  EXPECT_EQ(Tokens(file, word + " " + word), Strings({word, " ", word}));
}

TEST(StagesFaults, T31PosixBracketsAreUnicodeSets) {
  // A spacing mark, a superscript, a private character, a symbol, a modifier
  // letter, a no-break space.
  const std::string mark = "\xE0\xA4\xBF", square = "\xC2\xB2",
                    own = "\xEE\x80\x80", times = "\xC3\x97",
                    modifier = "\xCA\xB0", space = "\xC2\xA0";
  const std::string all =
      "a1$." + mark + square + own + times + modifier + space + "A";
  EXPECT_EQ(Matches("[[:alpha:]]", all), Strings({"a", mark, modifier, "A"}));
  EXPECT_EQ(Matches("[[:alnum:]]", all),
            Strings({"a", "1", mark, modifier, "A"}));
  EXPECT_EQ(Matches("[[:punct:]]", all), Strings({"$", ".", times}));
  EXPECT_EQ(
      Matches("[[:graph:]]", all),
      Strings({"a", "1", "$", ".", mark, square, own, times, modifier, "A"}));
  EXPECT_EQ(Matches("[[:print:]]", all).size(), 11u);
  EXPECT_EQ(Matches("[[:lower:]]", all), Strings({"a", modifier}));
  EXPECT_EQ(Matches("[[:^alpha:][:digit:]]", "a1."), Strings({"1", "."}));
  json file = Characters();
  file["normalizer"] = {{"type", "Replace"},
                        {"pattern", {{"Regex", "[[:^punct:]]"}}},
                        {"content", ""}};
  const auto refused = Tokenizer::FromJson(file.dump(), "test").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
}

TEST(StagesFaults, T31EscapesOfTheOtherSyntax) {
  EXPECT_EQ(Matches("\\v", "\x0B\n\r\xC2\x85v"), Strings({"\x0B"}));
  EXPECT_EQ(Matches("\\V", "\x0B\nV"), Strings({"V"}));
  EXPECT_EQ(Matches("\\Q.\\E", "Q.E"), Strings());
  EXPECT_EQ(Matches("\\Q|\\E", "Q.E"), Strings({"Q", "E"}));
  EXPECT_EQ(Matches("[\\E]", "Q.E"), Strings({"E"}));
  EXPECT_EQ(Matches("\\u00e9|[\\u0041]",
                    "\xC3\xA9"
                    "Ae"),
            Strings({"\xC3\xA9", "A"}));
  EXPECT_EQ(Matches("\\O", "a\n"), Strings({"a", "\n"}));
  for (const char* pattern : {"\\u12", "\\u12g4", "[\\O]"}) {
    json file = Characters();
    file["normalizer"] = {{"type", "Replace"},
                          {"pattern", {{"Regex", pattern}}},
                          {"content", ""}};
    EXPECT_FALSE(Tokenizer::FromJson(file.dump(), "test").ok()) << pattern;
  }
}

TEST(StagesFaults, T31NoEmptyMatchBehindAMatch) {
  const struct {
    const char *pattern, *text, *expected;
  } kCases[] = {{"a*", "ab", "xbx"},    {"a*", "aab", "xbx"},
                {"a*", "ba", "xbx"},    {"a*", "", ""},
                {"b?", "aab", "xaxax"}, {"x*", "ab", "xaxbx"}};
  for (const auto& row : kCases) {
    json file = Characters();
    file["normalizer"] = {{"type", "Replace"},
                          {"pattern", {{"Regex", row.pattern}}},
                          {"content", "x"}};
    std::string found;
    for (const std::string& token : Tokens(file, row.text)) found += token;
    EXPECT_EQ(found, row.expected) << row.pattern << " " << row.text;
  }
}

TEST(StagesFaults, T25WhatAnotherTokenSwallowedIsNotFoundAgain) {
  json file = Characters();
  const auto with = [&](const std::string& content, bool lstrip, bool rstrip) {
    json copy = file;
    copy["added_tokens"] = {{{"id", 7},
                             {"content", content},
                             {"single_word", false},
                             {"lstrip", lstrip},
                             {"rstrip", rstrip},
                             {"normalized", false},
                             {"special", false}}};
    return copy;
  };
  const std::string text = "a\n\n\n\n\n\n\nb";
  EXPECT_EQ(Tokens(with("\n\n", true, true), text),
            Strings({"a", "\n\n", "b"}));
  EXPECT_EQ(Tokens(with("\n\n", false, false), text),
            Strings({"a", "\n\n", "\n\n", "\n\n", "\n", "b"}));
  // Without lstrip the reference counts each, as often as it begins.
  EXPECT_EQ(Tokens(with("\n\n", false, true), text),
            Strings({"a", "\n\n", "\n\n", "\n\n", "b"}));
  EXPECT_EQ(Tokens(with(" \n", true, true), "a \n \n\n \n  \nb"),
            Strings({"a", " \n", "b"}));
}

// "first" means the beginning of the caller's text: what a normalizer leaves
// of a text whose first characters it removed does not begin there.
TEST(StagesFaults, T1PrefixOnlyWhereTheTextBegins) {
  const json kStrip = {
      {"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  const auto replace = [](const char* what, const char* content) {
    return json{{"type", "Replace"},
                {"pattern", {{"String", what}}},
                {"content", content}};
  };
  const struct {
    json normalizer;
    std::string text;
    std::string expected;  // "_" for the prefix
  } kCases[] = {
      {nullptr, "a b", "_a_b"},
      {{{"type", "StripAccents"}},
       "\xCC\x81"
       "a b",
       "a_b"},
      {{{"type", "StripAccents"}}, "a\xCC\x81 b", "_a_b"},
      {kStrip, "  a b", "a_b"},
      {kStrip, "a b", "_a_b"},
      {replace("a", "x"), "a b", "_x_b"},
      {replace("aa", "x"), "aa b", "x_b"},
      {replace("aa", "x"), "ba b", "_ba_b"},
      {replace("a", ""), "ab", "b"},
      {replace("a", ""), "ba", "_b"},
      {{{"type", "Nmt"}},
       "\x1F"
       "a b",
       "a_b"},
      {{{"type", "Sequence"},
        {"normalizers", {{{"type", "StripAccents"}}, {{"type", "Lowercase"}}}}},
       "\xCC\x81"
       "a b",
       "a_b"},
      {{{"type", "Sequence"},
        {"normalizers",
         {replace("a", ""), {{"type", "Prepend"}, {"prepend", "x"}}}}},
       "ab",
       "xb"},
  };
  for (const auto& row : kCases) {
    json file = Characters();
    file["normalizer"] = row.normalizer;
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", "\xE2\x96\x81"},
                             {"prepend_scheme", "first"},
                             {"split", true}};
    std::string found;
    for (const std::string& token : Tokens(file, row.text)) {
      found += token == "\xE2\x96\x81" ? "_" : token;
    }
    EXPECT_EQ(found, row.expected) << row.normalizer << " " << row.text;
  }
}

}  // namespace
}  // namespace lanewise
