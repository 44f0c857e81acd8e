// What holds for any text and any file, on random ones.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode.h"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

// Characters of every class that patterns know, in short runs.
std::string RandomText(std::mt19937* random, size_t characters) {
  static constexpr char32_t kCharacters[] = {
      U' ',      U' ',      U'\n',         U'\r',         U'\t',     U'a',
      U'b',      U'Z',      U's',          U't',          U'l',      U'\'',
      U'0',      U'7',      U'_',          U'-',          U'.',      U'$',
      U'<',      U'|',      U'>',          U'\u00A0',     U'\u0085', U'\u00E9',
      U'\u0301', U'\u0130', U'\u00BD',     U'\u0928',     U'\u093F', U'\u3000',
      U'\u4E2D', U'\u3042', U'\uAC01',     U'\u2013',     U'\u200B', U'\u200D',
      U'\u180E', U'\uFF21', U'\U0001F60A', U'\U00010400', U'\0'};
  constexpr size_t kCount = sizeof(kCharacters) / sizeof(kCharacters[0]);
  std::string text;
  for (size_t i = 0; i < characters;) {
    const char32_t c = kCharacters[(*random)() % kCount];
    const size_t run = (*random)() % 4 == 0 ? 1 + (*random)() % 6 : 1;
    for (size_t j = 0; j < run; ++j, ++i) AppendUtf8(c, &text);
  }
  return text;
}

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes = RandomText(random, size);
  for (char& c : bytes) {
    if ((*random)() % 8 == 0) c = static_cast<char>((*random)());
  }
  return bytes;
}

// GPT-2's pattern, alternative by alternative, as a scanner.
class PlainGpt2 {
 public:
  explicit PlainGpt2(absl::string_view text) {
    for (size_t pos = 0; pos < text.size();) {
      starts_.push_back(pos);
      characters_.push_back(NextCodePoint(text, &pos));
    }
    starts_.push_back(text.size());
  }

  std::vector<size_t> Ends() {
    std::vector<size_t> ends;
    for (size_t i = 0; i < characters_.size();) {
      i = Next(i);
      ends.push_back(starts_[i]);
    }
    return ends;
  }

 private:
  enum Class { kLetter, kNumber, kSpace, kOther, kEnd };

  Class ClassOf(size_t i) const {
    if (i >= characters_.size()) return kEnd;
    const char32_t c = characters_[i];
    if (IsWhitespace(c)) return kSpace;
    if (IsNumeric(c)) return kNumber;
    // Letters: word characters that are no marks, digits, joiners or "_".
    const bool letter = IsWordCharacter(c) && !IsMark(c) && c != '_' &&
                        c != 0x200D && c != 0x200C;
    return letter ? kLetter : kOther;
  }

  bool Contraction(size_t i, size_t* end) const {
    if (characters_[i] != '\'') return false;
    const auto at = [&](size_t j) {
      return i + j < characters_.size() ? characters_[i + j] : U'\0';
    };
    if (at(1) == 's' || at(1) == 't' || at(1) == 'm' || at(1) == 'd') {
      *end = i + 2;
      return true;
    }
    if ((at(1) == 'r' && at(2) == 'e') || (at(1) == 'v' && at(2) == 'e') ||
        (at(1) == 'l' && at(2) == 'l')) {
      *end = i + 3;
      return true;
    }
    return false;
  }

  size_t Next(size_t i) const {
    size_t end = i;
    if (Contraction(i, &end)) return end;
    const size_t word = characters_[i] == ' ' ? i + 1 : i;
    const Class kind = ClassOf(word);
    if (kind == kLetter || kind == kNumber || kind == kOther) {
      end = word;
      while (ClassOf(end) == kind) ++end;
      return end;
    }
    end = i;
    while (ClassOf(end) == kSpace) ++end;
    // White space before other text leaves its last character to that.
    if (end < characters_.size() && end > i + 1) --end;
    return end;
  }

  std::vector<char32_t> characters_;
  std::vector<size_t> starts_;
};

TEST(Property, Gpt2PatternEqualsAScanner) {
  auto regex = Regex::Compile(kByteLevelPattern);
  ASSERT_TRUE(regex.ok()) << regex.status();
  const PreTokenizerPtr split = MakeSplitPreTokenizer(
      *std::move(regex), SplitBehavior::kIsolated, /*invert=*/false);
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Pieces pieces;
    pieces.text = RandomText(&random, 1 + round % 60);
    pieces.pieces = {{0, pieces.text.size(), true}};
    ASSERT_TRUE(split->Apply(&pieces).ok());
    std::vector<size_t> ends;
    for (const Piece& piece : pieces.pieces) ends.push_back(piece.end);
    ASSERT_EQ(ends, PlainGpt2(pieces.text).Ends()) << pieces.text;
  }
}

TEST(Property, ByteLevelRoundTrips) {
  EncodeOptions options;
  options.add_special_tokens = false;
  for (const char* name :
       {"gpt2", "llama3", "cl100k", "o200k", "deepseek", "starcoder"}) {
    const auto tokenizer = LoadTestTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
      const std::string bytes = RandomBytes(&random, 1 + round % 50);
      const auto ids = tokenizer->Encode(bytes, options);
      ASSERT_TRUE(ids.ok()) << ids.status();
      ASSERT_EQ(tokenizer->Decode(*ids, {}), ReplaceInvalidUtf8(bytes)) << name;
    }
  }
}

TEST(Property, ByteFallbackRoundTrips) {
  EncodeOptions options;
  options.add_special_tokens = false;
  for (const char* name : {"llama2", "gemma", "llama2_metaspace"}) {
    const auto tokenizer = LoadTestTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
      const std::string text = "x" + RandomText(&random, 1 + round % 50);
      const auto ids = tokenizer->Encode(text, options);
      ASSERT_TRUE(ids.ok()) << ids.status();
      ASSERT_EQ(tokenizer->Decode(*ids, {}), text) << name;
    }
  }
}

TEST(Property, T28PlainRangesHoldOnRandomPrompts) {
  const auto tokenizer = LoadTestTokenizer("llama3");
  ASSERT_NE(tokenizer, nullptr);
  const std::string control = "<|eot_id|>";
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    std::string prompt;
    std::vector<std::pair<size_t, size_t>> ranges;
    size_t expected = 0;
    for (int part = 0; part < 6; ++part) {
      std::string text = RandomText(&random, random() % 12);
      const bool has_control = random() % 2 == 0;
      if (has_control) text.insert(0, control);
      if (random() % 2 == 0) {
        ranges.emplace_back(prompt.size(), prompt.size() + text.size());
      } else {
        expected += has_control ? 1 : 0;
      }
      prompt += text;
    }
    EncodeOptions options;
    options.add_special_tokens = false;
    options.parse_special_tokens = true;
    options.plain_ranges = ranges;
    const auto ids = tokenizer->Encode(prompt, options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    const auto found = std::count_if(ids->begin(), ids->end(), [&](int32_t id) {
      return tokenizer->IsSpecial(id);
    });
    ASSERT_EQ(static_cast<size_t>(found), expected) << prompt;
    ASSERT_EQ(tokenizer->Decode(*ids, {}), prompt);
  }
}

TEST(Property, ThreadsShareATokenizer) {
  for (const char* name : {"gpt2", "t5", "bert_uncased", "llama2"}) {
    const auto tokenizer = LoadTestTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(5);
    std::vector<std::string> texts;
    std::vector<Ids> expected;
    for (int i = 0; i < 30; ++i) {
      texts.push_back(RandomText(&random, 80));
      expected.push_back(tokenizer->Encode(texts.back(), {}).value_or(Ids()));
    }
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < texts.size(); ++i) {
          const auto ids = tokenizer->Encode(texts[i], {});
          wrong[t] += !ids.ok() || *ids != expected[i];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4)) << name;
  }
}

TEST(Property, DamagedFilesNeverCrash) {
  for (const char* name : {"gpt2", "added_llama", "albert", "bert_truncpad",
                           "wordlevel", "clip"}) {
    const std::string file =
        ReadTestFile(TestDataPath(absl::StrCat(name, "/tokenizer.json")));
    std::mt19937 random(6);
    size_t loaded = 0;
    for (int round = 0; round < 150; ++round) {
      std::string damaged = file;
      // Stages stand at the start of a file, the vocabulary behind them.
      const size_t reach = round % 2 == 0 ? 4000 : damaged.size();
      for (int i = 0; i < 1 + round % 3; ++i) {
        static constexpr char kBytes[] = "0123456789abtfn\"\\{}[]:,-.eu\x80";
        damaged[random() % std::min(reach, damaged.size())] =
            kBytes[random() % (sizeof(kBytes) - 1)];
      }
      const auto tokenizer = Tokenizer::FromJson(damaged, "f");
      if (!tokenizer.ok()) continue;
      ++loaded;
      const auto ids = (*tokenizer)->Encode(RandomBytes(&random, 60), {});
      if (ids.ok()) (void)(*tokenizer)->Decode(*ids, {});
    }
    EXPECT_GT(loaded, 0u) << name;
  }
}

TEST(Property, IdsOutOfRangeAreNothing) {
  for (const char* name : {"gpt2", "t5", "bert_uncased", "llama2", "clip"}) {
    const auto tokenizer = LoadTestTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    const auto past = static_cast<int32_t>(tokenizer->vocab_size());
    const Ids ids = {INT32_MIN, -1, past, INT32_MAX};
    EXPECT_EQ(tokenizer->Decode(ids, {}), "") << name;
    for (const int32_t id : ids) {
      EXPECT_EQ(tokenizer->TokenText(id), "");
      EXPECT_FALSE(tokenizer->IsSpecial(id));
    }
    EXPECT_NE(tokenizer->TokenText(past - 1), "");
  }
}

TEST(Property, TokenTextAndIdAgree) {
  for (const char* name : {"gpt2", "added_bert", "llama2", "t5", "wordlevel"}) {
    const auto tokenizer = LoadTestTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    for (size_t i = 0; i < tokenizer->vocab_size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      EXPECT_EQ(tokenizer->TokenId(tokenizer->TokenText(id)), id) << name;
    }
  }
}

TEST(Property, TruncationAndPaddingCanBeLeftOut) {
  const auto tokenizer = LoadTestTokenizer("bert_truncpad");
  ASSERT_NE(tokenizer, nullptr);
  EncodeOptions options;
  EXPECT_EQ(tokenizer->Encode("the", options)->size(), 20u);
  options.pad = false;
  const size_t natural = tokenizer->Encode("the", options)->size();
  EXPECT_LT(natural, 10u);
  const std::string text =
      "the the the the the the the the the the the the "
      "the the the the the the the the the the the the";
  EXPECT_EQ(tokenizer->Encode(text, options)->size(), 16u);
  options.truncate = false;
  EXPECT_GT(tokenizer->Encode(text, options)->size(), 24u);
}

}  // namespace
}  // namespace lanewise
