#include "model/tokenizer/regex.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/tokenizer/regex_syntax.h"

namespace lanewise {
namespace {

std::vector<std::string> FindAll(const std::string& pattern,
                                 absl::string_view text) {
  std::vector<std::string> found;
  const auto regex = Regex::Compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.status();
  if (!regex.ok()) return found;
  Regex::Scratch scratch(*regex);
  for (size_t pos = 0; pos < text.size();) {
    Regex::Match match;
    const auto matched = regex->Find(text, pos, scratch, &match);
    EXPECT_TRUE(matched.ok()) << matched.status();
    if (!matched.ok() || !*matched || match.end == match.begin) break;
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
    pos = match.end;
  }
  return found;
}

using Strings = std::vector<std::string>;

// Oniguruma (Ruby syntax) and PCRE2 differ in each of these.
TEST(RegexSyntax, PlusBehindARangeRepeats) {
  EXPECT_EQ(FindAll("\\p{N}{1,3}+", "1234567"), Strings({"1234567"}));
  EXPECT_EQ(FindAll("[ab]{2}+", "abababa"), Strings({"ababab"}));
  EXPECT_EQ(FindAll("(?:ab|c){1,2}+x", "ababcx"), Strings({"ababcx"}));
  EXPECT_EQ(FindAll("a{1,2}", "aaaaa"), Strings({"aa", "aa", "a"}));
  EXPECT_EQ(FindAll("a++", "aaa"), Strings({"aaa"}));
  EXPECT_EQ(FindAll("a++a", "aaa"), Strings());  // possessive
  EXPECT_EQ(FindAll("a{,2}b", "aab"), Strings({"aab"}));
  EXPECT_EQ(FindAll("a{x}", "a{x}"), Strings({"a{x}"}));
}

TEST(RegexSyntax, LineAnchorsAreAtLines) {
  EXPECT_EQ(FindAll("\\w+$", "ab\ncd\n"), Strings({"ab", "cd"}));
  EXPECT_EQ(FindAll("^c", "ab\ncd"), Strings({"c"}));
}

TEST(RegexSyntax, WhiteSpaceIsTheProperty) {
  // U+0085 is white space; U+180E is not, though PCRE2's \s takes it.
  EXPECT_EQ(FindAll("\\s+", "a\xC2\x85 \xE1\xA0\x8E"), Strings({"\xC2\x85 "}));
  EXPECT_EQ(FindAll("[^\\s]+", "a \xE1\xA0\x8E"),
            Strings({"a", "\xE1\xA0\x8E"}));
  EXPECT_EQ(FindAll("[[:space:]a]+", " a\xC2\xA0"), Strings({" a\xC2\xA0"}));
}

TEST(RegexSyntax, WordCharactersHaveAllMarks) {
  const std::string word = "\xE0\xA4\xA8\xE0\xA4\xBF";  // a spacing mark
  EXPECT_EQ(FindAll("\\w+", word), Strings({word}));
  EXPECT_EQ(FindAll("[\\w]+",
                    "\xC2\xBD"
                    "a"),
            Strings({"a"}));
}

TEST(RegexSyntax, HexDigits) {
  EXPECT_EQ(FindAll("\\h+", "xfFg 9"), Strings({"fF", "9"}));
  EXPECT_EQ(FindAll("[\\hx]+", "xf g"), Strings({"xf"}));
}

TEST(RegexSyntax, ScriptsAreWithoutExtensions) {
  // U+3001 is common, shared by several scripts through extensions.
  EXPECT_EQ(FindAll("\\p{Han}+", "\xE4\xB8\x80\xE3\x80\x81"),
            Strings({"\xE4\xB8\x80"}));
  EXPECT_EQ(FindAll("\\p{Letter}+", "ab1"), Strings({"ab"}));
  EXPECT_EQ(FindAll("\\p{^L}+", "ab1"), Strings({"1"}));
  EXPECT_EQ(FindAll("\\P{^L}+", "ab1"), Strings({"ab"}));
}

TEST(RegexSyntax, SetsWithinSets) {
  EXPECT_EQ(FindAll("[a-z&&[^aeiou]]+", "hello"), Strings({"h", "ll"}));
  EXPECT_EQ(FindAll("[a[bc]]+", "abcd"), Strings({"abc"}));
  EXPECT_EQ(FindAll("[]a]+", "a]b"), Strings({"a]"}));
  EXPECT_EQ(FindAll("[a&b]+", "a&b"), Strings({"a&b"}));
}

TEST(RegexSyntax, Options) {
  EXPECT_EQ(FindAll("(?i:'s|'t)", "'S't"), Strings({"'S", "'t"}));
  EXPECT_EQ(FindAll("(?m:a.b)", "a\nb"), Strings({"a\nb"}));
  EXPECT_EQ(FindAll("a.b", "a\nb"), Strings());
  EXPECT_EQ(FindAll("(?i)AB", "ab"), Strings({"ab"}));
  EXPECT_EQ(FindAll("\\s+(?!\\S)", "a   b"), Strings({"  "}));
  EXPECT_EQ(FindAll("(?<=a)b", "abb"), Strings({"b"}));
}

TEST(RegexSyntax, WhatHasNoEqualIsNamed) {
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{
           {"(?~abc)", "absent"},
           {"(a)(?(1)b|c)", "condition"},
           {"a(?i)b", "option"},
           {"[\\H]", "\\H"},
           {"[a", "without ]"}}) {
    const auto regex = Regex::Compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_TRUE(absl::StrContains(regex.status().message(), name))
        << regex.status();
  }
}

TEST(Regex, PatternsThatDoNotCompile) {
  for (const char* pattern : {"(", ")", "*a", "\\p{Nonsense}", "(?<a"}) {
    EXPECT_FALSE(Regex::Compile(pattern).ok()) << pattern;
  }
  EXPECT_FALSE(Regex::Compile(std::string(100'000, 'a')).ok());
}

TEST(Regex, LimitsAreStatuses) {
  const auto regex = Regex::Compile("(?:a|a)*(?:a|a)*[cd]");
  ASSERT_TRUE(regex.ok());
  Regex::Scratch scratch(*regex);
  Regex::Match match;
  const auto found =
      regex->Find(std::string(2000, 'a') + "b", 0, scratch, &match);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted)
      << found.status();
  // The scratch stays usable.
  const auto again = regex->Find("aac", 0, scratch, &match);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again);
  EXPECT_EQ(match.end, 3u);
}

// Each match alone stays within its limit; from every start one follows.
TEST(Regex, AllMatchesTogetherHaveALimit) {
  std::string text;
  for (int i = 0; i < 2'000; ++i) text += "ab ";
  text += "!";
  for (const char* pattern :
       {"(\\s|\\w)*$|x", "(?:a?){500}a{500}", "(a{0,1000}){0,1000}b\\z"}) {
    const auto regex = Regex::Compile(pattern);
    ASSERT_TRUE(regex.ok()) << regex.status();
    Regex::Scratch scratch(*regex, text.size());
    Regex::Match match;
    const auto found = regex->Find(text, 0, scratch, &match);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted)
        << pattern << " " << found.status();
  }
}

TEST(Regex, LongMatchesTakeMoreStepsThanTheFreeOnes) {
  EXPECT_EQ(FindAll("(?: |b)+(?!\\S)", std::string(50'000, ' ') + "a"),
            Strings({std::string(49'999, ' ')}));
  const std::string word = "a" + std::string(50'000, 'b') + "c";
  EXPECT_EQ(FindAll("a(?:b|x)+c", " " + word), Strings({word}));
}

TEST(Regex, MessagesCutThePattern) {
  const auto regex = Regex::Compile("(" + std::string(50'000, 'a'));
  ASSERT_FALSE(regex.ok());
  EXPECT_LT(regex.status().message().size(), 1000u);
}

TEST(Regex, FindsFromAPlaceAndLooksBehindIt) {
  const auto regex = Regex::Compile("(?<=a)b");
  ASSERT_TRUE(regex.ok());
  Regex::Scratch scratch(*regex);
  Regex::Match match;
  EXPECT_TRUE(*regex->Find("ab", 1, scratch, &match));
  EXPECT_FALSE(*regex->Find("ab", 2, scratch, &match));
  EXPECT_FALSE(*regex->Find("", 0, scratch, &match));
}

}  // namespace
}  // namespace lanewise
