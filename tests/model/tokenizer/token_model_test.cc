// BPE, Unigram and WordPiece against plain references on random words.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/sentencepiece.h"
#include "model/tokenizer/trie.h"
#include "model/tokenizer/unigram.h"
#include "model/tokenizer/wordlevel.h"
#include "model/tokenizer/wordpiece.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

Ids Tokenize(const TokenModel& model, const std::string& word,
             bool allow_special = true) {
  Pieces pieces;
  pieces.text = word;
  pieces.pieces = {{0, word.size(), true}};
  Ids ids;
  const absl::Status status =
      model.Tokenize(pieces, allow_special, &ids, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

Vocabulary MakeVocabulary(const Strings& tokens) {
  auto vocabulary = Vocabulary::FromList(tokens, "test");
  EXPECT_TRUE(vocabulary.ok());
  return *std::move(vocabulary);
}

std::string RandomWord(std::mt19937* random, size_t letters, size_t longest) {
  std::string word;
  const size_t size = 1 + (*random)() % longest;
  for (size_t i = 0; i < size; ++i) {
    word.push_back(static_cast<char>('a' + (*random)() % letters));
  }
  return word;
}

// Merges the best pair, leftmost first, until none is left: quadratic.
Strings PlainMerges(const std::string& word, const Bpe::MergeList& merges) {
  Strings symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    size_t best = merges.size(), place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rank = static_cast<size_t>(
          std::find(merges.begin(), merges.end(),
                    std::make_pair(symbols[i], symbols[i + 1])) -
          merges.begin());
      if (rank < best) {
        best = rank;
        place = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
}

TEST(Bpe, EqualsPlainMergesOnRandomVocabularies) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Strings tokens = {"a", "b", "c"};
    Bpe::MergeList merges;
    while (tokens.size() < 20) {
      const std::string& left = tokens[random() % tokens.size()];
      const std::string& right = tokens[random() % tokens.size()];
      const std::string both = left + right;
      const auto merge = std::make_pair(left, right);
      if (std::count(merges.begin(), merges.end(), merge) > 0) continue;
      merges.push_back(merge);
      if (std::count(tokens.begin(), tokens.end(), both) == 0) {
        tokens.push_back(both);
      }
    }
    const auto bpe = Bpe::Create(MakeVocabulary(tokens), merges, {}, "test");
    ASSERT_TRUE(bpe.ok()) << bpe.status();
    for (int i = 0; i < 50; ++i) {
      const std::string word = RandomWord(&random, 3, 40);
      Strings found;
      for (const int32_t id : Tokenize(**bpe, word)) {
        found.emplace_back((*bpe)->vocabulary().Text(id));
      }
      EXPECT_EQ(found, PlainMerges(word, merges)) << word;
    }
  }
}

TEST(Bpe, UnknownCharacters) {
  const Strings tokens = {"<unk>", "a", "<0xC3>", "<0xA4>"};
  BpeOptions options;
  const auto none = Bpe::Create(MakeVocabulary(tokens), {}, options, "test");
  EXPECT_EQ(Tokenize(**none, "xay"), Ids({1}));  // they vanish
  options.unk_token = "<unk>";
  const auto each = Bpe::Create(MakeVocabulary(tokens), {}, options, "test");
  EXPECT_EQ(Tokenize(**each, "xyaz"), Ids({0, 0, 1, 0}));
  options.fuse_unk = true;
  const auto fused = Bpe::Create(MakeVocabulary(tokens), {}, options, "test");
  EXPECT_EQ(Tokenize(**fused, "xyaz"), Ids({0, 1, 0}));
  options.byte_fallback = true;
  const auto bytes = Bpe::Create(MakeVocabulary(tokens), {}, options, "test");
  EXPECT_EQ(Tokenize(**bytes, "\xC3\xA4x"), Ids({2, 3, 0}));
}

TEST(Bpe, PrefixAndSuffix) {
  BpeOptions options;
  options.end_of_word_suffix = "</w>";
  const auto suffix = Bpe::Create(MakeVocabulary({"a", "b", "b</w>", "ab</w>"}),
                                  {{"a", "b</w>"}}, options, "test");
  ASSERT_TRUE(suffix.ok()) << suffix.status();
  EXPECT_EQ(Tokenize(**suffix, "bab"), Ids({1, 3}));
  options.end_of_word_suffix = "";
  options.continuing_subword_prefix = "##";
  const auto prefix = Bpe::Create(MakeVocabulary({"a", "##b", "ab"}),
                                  {{"a", "##b"}}, options, "test");
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_EQ(Tokenize(**prefix, "ab"), Ids({2}));
}

TEST(Bpe, IgnoreMergesKeepsWholeWords) {
  BpeOptions options;
  options.ignore_merges = true;
  const auto bpe =
      Bpe::Create(MakeVocabulary({"a", "b", "abc", "c"}), {}, options, "test");
  EXPECT_EQ(Tokenize(**bpe, "abc"), Ids({2}));
  EXPECT_EQ(Tokenize(**bpe, "abcc"), Ids({0, 1, 3, 3}));
}

TEST(Bpe, RepeatedWordsAreEqual) {
  // The second time a word comes out of the cache.
  const auto bpe =
      Bpe::Create(MakeVocabulary({"a", "b", "ab"}), {{"a", "b"}}, {}, "test");
  Pieces pieces;
  pieces.text = "abaabaabb";
  pieces.pieces = {{0, 3, true}, {3, 6, false}, {6, 9, false}, {0, 3, false}};
  Ids ids;
  ASSERT_TRUE((*bpe)->Tokenize(pieces, true, &ids, nullptr).ok());
  EXPECT_EQ(ids, Ids({2, 0, 2, 0, 2, 1, 2, 0}));
}

TEST(TokenModel, T28BlockedTokensDoNotComeOut) {
  const Strings tokens = {"<unk>", "a", "b", "ab"};
  BpeOptions options;
  options.ignore_merges = true;
  const auto bpe =
      Bpe::Create(MakeVocabulary(tokens), {{"a", "b"}}, options, "test");
  const auto unigram = Unigram::Create(MakeVocabulary(tokens), {0, -2, -2, -1},
                                       0, false, "test");
  const auto pieces =
      WordPiece::Create(MakeVocabulary({"<unk>", "a", "##b", "ab"}),
                        {"<unk>", "##", 100}, "test");
  for (TokenModel* model : {static_cast<TokenModel*>(bpe->get()),
                            static_cast<TokenModel*>(unigram->get()),
                            static_cast<TokenModel*>(pieces->get())}) {
    model->BlockSpecial({0, 3});
    EXPECT_EQ(Tokenize(*model, "ab", true), Ids({3}));
    EXPECT_EQ(Tokenize(*model, "ab", false), Ids({1, 2}));
  }
  const auto words = WordLevel::Create(MakeVocabulary(tokens), "<unk>");
  words->BlockSpecial({3});
  EXPECT_EQ(Tokenize(*words, "ab", true), Ids({3}));
  EXPECT_EQ(Tokenize(*words, "ab", false), Ids({0}));
}

// The best sum of scores over all cuts, by recursion over every cut.
double BestScore(const std::string& word, const Strings& tokens,
                 const std::vector<double>& scores) {
  if (word.empty()) return 0;
  double best = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (word.compare(0, tokens[i].size(), tokens[i]) != 0) continue;
    best = std::max(best, scores[i] + BestScore(word.substr(tokens[i].size()),
                                                tokens, scores));
  }
  return best;
}

TEST(Unigram, FindsTheBestCut) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    Strings tokens = {"a", "b", "c"};
    std::vector<double> scores = {-4, -5, -4.5};
    while (tokens.size() < 12) {
      const std::string token = RandomWord(&random, 3, 4);
      if (std::count(tokens.begin(), tokens.end(), token) > 0) continue;
      tokens.push_back(token);
      scores.push_back(-static_cast<double>(random() % 1000) / 100);
    }
    const auto unigram = Unigram::Create(MakeVocabulary(tokens), scores,
                                         std::nullopt, false, "test");
    ASSERT_TRUE(unigram.ok()) << unigram.status();
    for (int i = 0; i < 20; ++i) {
      const std::string word = RandomWord(&random, 3, 9);
      double score = 0;
      std::string text;
      for (const int32_t id : Tokenize(**unigram, word)) {
        score += scores[id];
        text += tokens[id];
      }
      EXPECT_EQ(text, word);
      EXPECT_NEAR(score, BestScore(word, tokens, scores), 1e-9) << word;
    }
  }
}

TEST(Unigram, UnknownCharactersAreOneToken) {
  const auto unigram = Unigram::Create(MakeVocabulary({"<unk>", "a"}), {0, -1},
                                       0, false, "test");
  EXPECT_EQ(Tokenize(**unigram,
                     "axy\xE4\xB8\x80"
                     "a"),
            Ids({1, 0, 1}));
  const auto bytes = Unigram::Create(MakeVocabulary({"<unk>", "a", "<0x78>"}),
                                     {0, -1, -20}, 0, true, "test");
  EXPECT_EQ(Tokenize(**bytes, "axa"), Ids({1, 2, 1}));
  EXPECT_EQ(Tokenize(**bytes, "aya"), Ids({1, 0, 1}));
}

TEST(WordPiece, LongestMatchFirst) {
  const auto model = WordPiece::Create(
      MakeVocabulary({"[UNK]", "un", "##aff", "##able", "unaff", "##a"}),
      {"[UNK]", "##", 12}, "test");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Tokenize(**model, "unaffable"), Ids({4, 3}));
  EXPECT_EQ(Tokenize(**model, "una"), Ids({1, 5}));
  EXPECT_EQ(Tokenize(**model, "unx"), Ids({0}));
  EXPECT_EQ(Tokenize(**model, "able"), Ids({0}));
  EXPECT_EQ(Tokenize(**model, "unaaaaaaaaaa"),
            Ids({1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(Tokenize(**model, "unaaaaaaaaaaa"), Ids({0}));  // too long
  EXPECT_FALSE(WordPiece::Create(MakeVocabulary({"a"}), {}, "test").ok());
}

TEST(SentencePiece, EqualScoresMergeLeftmostFirst) {
  const auto model = SentencePieceBpe::Create(
      MakeVocabulary({"<unk>", "a", "aa", "aaa"}), {0, -3, -1, -1},
      {false, true, true, true}, 0, "test");
  ASSERT_TRUE(model.ok()) << model.status();
  // "aa" forms first on the left and, as good as the next "aa" and further
  // left, grows to "aaa".
  EXPECT_EQ(Tokenize(**model, "aaaaa"), Ids({3, 2}));
  EXPECT_EQ(Tokenize(**model, "x"), Ids({0}));
}

TEST(Trie, FindsWhatIsInIt) {
  std::mt19937 random(3);
  std::set<std::string> keys;
  while (keys.size() < 200) keys.insert(RandomWord(&random, 4, 6));
  const Strings list(keys.begin(), keys.end());
  std::vector<std::pair<absl::string_view, int32_t>> entries;
  for (size_t i = 0; i < list.size(); ++i) {
    entries.emplace_back(list[i], static_cast<int32_t>(i));
  }
  std::shuffle(entries.begin(), entries.end(), random);
  const ByteTrie trie = ByteTrie::Build(entries);
  for (int i = 0; i < 2000; ++i) {
    const std::string word = RandomWord(&random, 5, 7);
    ByteTrie::Node node = ByteTrie::kRoot;
    int32_t value = -1;
    size_t pos = 0;
    while (pos < word.size() && trie.Walk(word[pos], &node)) ++pos;
    if (pos == word.size()) value = trie.value(node);
    EXPECT_EQ(value >= 0, keys.count(word) > 0) << word;
    if (value >= 0) {
      EXPECT_EQ(list[value], word);
    }
  }
  const ByteTrie empty = ByteTrie::Build({});
  ByteTrie::Node node = ByteTrie::kRoot;
  EXPECT_FALSE(empty.Walk('a', &node));
}

}  // namespace
}  // namespace lanewise
