// The texts of reported faults with the ids that the reference gives for them
// (reports.jsonl, recorded with tokenizers 0.23.3 on the tokenizers under
// tests/data/tokenizer). A line: the fault, the tokenizer, the text as [piece,
// count] pairs, the ids as [[ids], count] pairs, without added special tokens.
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unigram.h"
#include "nlohmann/json.hpp"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

const Tokenizer* TestTokenizer(const std::string& name) {
  static auto& loaded = *new std::map<std::string, std::unique_ptr<Tokenizer>>;
  auto& tokenizer = loaded[name];
  if (tokenizer == nullptr) tokenizer = LoadTestTokenizer(name);
  return tokenizer.get();
}

void ExpectRecordedIds(const std::string& fault, size_t at_least) {
  std::ifstream file("tests/model/tokenizer/reports.jsonl");
  ASSERT_TRUE(file.good());
  size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line);
    if (row["fault"] != fault) continue;
    ++cases;
    SCOPED_TRACE(line.substr(0, 200));
    std::string text;
    for (const json& part : row["text"]) {
      for (int i = 0; i < part[1]; ++i) text += part[0].get<std::string>();
    }
    Ids expected;
    for (const json& part : row["ids"]) {
      const Ids ids = part[0];
      for (int i = 0; i < part[1]; ++i) {
        expected.insert(expected.end(), ids.begin(), ids.end());
      }
    }
    const Tokenizer* tokenizer = TestTokenizer(row["tokenizer"]);
    ASSERT_NE(tokenizer, nullptr);
    EncodeOptions options;
    options.add_special_tokens = false;
    options.parse_special_tokens = true;
    const auto ids = tokenizer->Encode(text, options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_TRUE(*ids == expected)
        << ids->size() << " ids, expected " << expected.size();
  }
  EXPECT_GE(cases, at_least);
}

TEST(Reports, T1SpaceBehindASpecialToken) { ExpectRecordedIds("T1", 7); }

TEST(Reports, T2FirstWordBehindASpecialToken) { ExpectRecordedIds("T2", 6); }

TEST(Reports, T4PrefixOnceAndEmojiByBytes) { ExpectRecordedIds("T4", 4); }

TEST(Reports, T5AccentsDashDigitsAndEmoji) { ExpectRecordedIds("T5", 3); }

TEST(Reports, T7RunsOfOneMarkAndOneSpace) { ExpectRecordedIds("T7", 7); }

TEST(Reports, T8CharactersOutsideTheVocabulary) { ExpectRecordedIds("T8", 5); }

TEST(Reports, T11LettersWithAccents) { ExpectRecordedIds("T11", 3); }

TEST(Reports, T13DashBetweenWords) { ExpectRecordedIds("T13", 2); }

TEST(Reports, T14CapitalsAccentsAndAttachedMarks) {
  ExpectRecordedIds("T14", 2);
}

TEST(Reports, T16CapitalLetters) { ExpectRecordedIds("T16", 3); }

TEST(Reports, T17LettersWithMarks) { ExpectRecordedIds("T17", 3); }

TEST(Reports, T19BlankLines) { ExpectRecordedIds("T19", 8); }

TEST(Reports, T22UnderscoresAndSpaces) { ExpectRecordedIds("T22", 5); }

TEST(Reports, T25SpacesBesideMask) { ExpectRecordedIds("T25", 3); }

TEST(Reports, T26PatternThatLooksAhead) { ExpectRecordedIds("T26", 1); }

TEST(Reports, T32MarksWithinWords) { ExpectRecordedIds("T32", 4); }

// Ids and token types of a pair, spelled.
std::string Pair(const std::string& name) {
  const Tokenizer* tokenizer = TestTokenizer(name);
  if (tokenizer == nullptr) return "";
  Ids types;
  const auto ids = tokenizer->EncodePair("a", "b", {}, &types);
  EXPECT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(ids->size(), types.size());
  std::string spelled;
  for (size_t i = 0; i < ids->size(); ++i) {
    spelled += tokenizer->TokenText((*ids)[i]) + std::to_string(types[i]);
  }
  return spelled;
}

TEST(Reports, M14M26SeparatorsAndTypesOfAPair) {
  EXPECT_EQ(Pair("bert_uncased"), "[CLS]0a0[SEP]0b1[SEP]1");
  // Two separators, and one type: such models have no other.
  const std::string kSpace = "\xE2\x96\x81";
  EXPECT_EQ(Pair("roberta"), "<s>0a0</s>0</s>0b0</s>0");
  EXPECT_EQ(Pair("xlmr"),
            "<s>0" + kSpace + "0a0</s>0</s>0" + kSpace + "0b0</s>0");
}

// Of cuts with equal scores the reference takes the one whose last piece is the
// longest. Its results, for scores in which almost everything is equal.
TEST(Reports, T7TiesGoToTheLongestLastPiece) {
  const struct {
    std::vector<std::string> tokens;
    std::vector<double> scores;
    std::string text;
    std::vector<std::string> pieces;
  } kCases[] = {
      {{"?", "!", "!!!!!", "!!"}, {0, -3, -3, -6}, "!!!!!!", {"!", "!!!!!"}},
      {{"?", "a", "b", "bbbb", "ab", "aa", "aab", "ba", "bbb"},
       {0, -1, -1, -2, -3, -4, -3, -4, -3},
       "aabbaabab",
       {"aab", "b", "aab", "a", "b"}},
      {{"?", "a", "b", "ab", "bbaa", "bab", "bbb", "bb", "aaab"},
       {0, -2, -2, -2, -4, -1, -3, -3, -4},
       "aabbaabab",
       {"a", "a", "bbaa", "bab"}},
      {{"?", "a", "b", "baba", "ab", "ba", "aba", "aa", "baa"},
       {0, -3, -2, -1, -4, -2, -1, -2, -2},
       "abababab",
       {"aba", "baba", "b"}},
      {{"?", "a", "b", "ba", "baa", "baaa", "aaa", "aab", "bbb"},
       {0, -2, -3, -4, -2, -1, -2, -4, -1},
       "aabbaabab",
       {"aab", "baa", "ba", "b"}},
  };
  for (const auto& row : kCases) {
    auto vocabulary = Vocabulary::FromList(row.tokens, "test");
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    const auto unigram = Unigram::Create(*std::move(vocabulary), row.scores, 0,
                                         /*byte_fallback=*/false, "test");
    ASSERT_TRUE(unigram.ok()) << unigram.status();
    Pieces pieces;
    pieces.text = row.text;
    pieces.pieces = {{0, row.text.size(), true}};
    Ids ids;
    ASSERT_TRUE((*unigram)->Tokenize(pieces, true, &ids, nullptr).ok());
    std::vector<std::string> found;
    for (const int32_t id : ids) found.push_back(row.tokens[id]);
    EXPECT_EQ(found, row.pieces) << row.text;
  }
}

}  // namespace
}  // namespace lanewise
