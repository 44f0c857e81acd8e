// The places of tokens in their text, against recorded offsets.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "golden_root.h"
#include "gtest/gtest.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode.h"
#include "nlohmann/json.hpp"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

using Range = std::pair<size_t, size_t>;

// Byte places of characters, and the end.
std::vector<size_t> Characters(const std::string& text) {
  std::vector<size_t> places;
  for (size_t pos = 0; pos < text.size();) {
    places.push_back(pos);
    NextCodePoint(text, &pos);
  }
  places.push_back(text.size());
  return places;
}

// Without spaces at either end: whether a token has those of its text depends
// on an option of the reference that changes nothing else.
Range Trimmed(const std::string& text, Range range) {
  while (range.first < range.second) {
    size_t next = range.first;
    if (!IsWhitespace(NextCodePoint(text, &next))) break;
    range.first = next;
  }
  while (range.first < range.second) {
    size_t last = range.second - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    size_t next = last;
    if (!IsWhitespace(NextCodePoint(text, &next))) break;
    range.second = last;
  }
  if (range.first == range.second) range = {0, 0};
  return range;
}

struct Counts {
  size_t tokens = 0;
  size_t differ = 0;
  std::string first;  // difference
};

std::string GoldenFolder() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  return named != nullptr ? named : kGoldenRoot;
}

// The whole suite's recorded offsets, or those in the tree.
std::string OffsetsFile(const std::string& name) {
  const std::string golden = GoldenFolder();
  return golden.empty() ? TestDataPath(name + "/offsets.jsonl")
                        : golden + "/tokenizers/" + name + "/encode.jsonl";
}

Counts Compare(const std::string& name) {
  Counts counts;
  const auto tokenizer = LoadTestTokenizer(name);
  const std::string lines = ReadTestFile(OffsetsFile(name));
  for (absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const auto golden =
        nlohmann::json::parse(std::string(line), nullptr, false);
    if (!golden.contains("offsets_plain")) continue;
    const std::string text = golden["text"];
    std::vector<Range> ranges;
    const auto ids = tokenizer->EncodeWithRanges(text, true, &ranges);
    EXPECT_TRUE(ids.ok()) << ids.status();
    if (!ids.ok()) continue;
    EXPECT_EQ(*ids, golden["ids_plain"].get<std::vector<int32_t>>());
    EXPECT_EQ(ranges.size(), ids->size());
    const std::vector<size_t> places = Characters(text);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto& offset = golden["offsets_plain"][i];
      const Range expected =
          Trimmed(text, {places.at(offset[0]), places.at(offset[1])});
      ++counts.tokens;
      if (Trimmed(text, ranges[i]) == expected) continue;
      ++counts.differ;
      if (!counts.first.empty()) continue;
      counts.first = absl::StrCat(
          "text ", golden["i"].get<int>(), " token ", i, ": expected [",
          expected.first, ", ", expected.second, "), found [", ranges[i].first,
          ", ", ranges[i].second, ") of ", text.substr(0, 80));
    }
  }
  return counts;
}

// What stands for several characters is, for the reference, of the last one
// (here of the first), as are characters that compose with those before them.
bool HasSuch(const std::string& name) {
  return absl::c_linear_search(
      std::vector<std::string>{"added_unigram", "albert", "bpe_suffix", "clip",
                               "qwen2", "t5_nmt", "unigram_bytefallback",
                               "xlmr"},
      name);
}

class Ranges : public testing::TestWithParam<const char*> {};

TEST_P(Ranges, EqualTheRecordedOffsets) {
  const Counts counts = Compare(GetParam());
  EXPECT_GT(counts.tokens, 400u);
  if (HasSuch(GetParam())) {
    EXPECT_LT(counts.differ * 100, counts.tokens) << counts.first;
  } else {
    EXPECT_EQ(counts.differ, 0u) << counts.first;
  }
  std::printf("%s: %zu tokens, %zu differ\n", GetParam(), counts.tokens,
              counts.differ);
}

// All of the suite, or those with offsets in the tree.
std::vector<const char*> Names() {
  if (!GoldenFolder().empty()) {
    return {"added_bert",
            "added_bytelevel",
            "added_llama",
            "added_unigram",
            "albert",
            "bert_cased",
            "bert_cased_strip",
            "bert_lower_keepaccents",
            "bert_uncased",
            "bpe_suffix",
            "cl100k",
            "clip",
            "deepseek",
            "gemma",
            "gpt2",
            "gpt2_prefix",
            "llama2",
            "llama2_metaspace",
            "llama2_metaspace_split",
            "llama3",
            "o200k",
            "qwen2",
            "roberta",
            "roberta_prefix",
            "starcoder",
            "t5",
            "t5_nmt",
            "unigram_bytefallback",
            "wordlevel",
            "xlmr"};
  }
  return {"bert_uncased", "roberta", "xlmr"};
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Ranges, testing::ValuesIn(Names()),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

TEST(TokenRanges, AreOfTheBytesThatCameIn) {
  const auto tokenizer = LoadTestTokenizer("bert_uncased");
  const std::string text = "ab \xE6\xAD cd \xC3\x89t\xC3\xA9";
  std::vector<Range> ranges;
  const auto ids = tokenizer->EncodeWithRanges(text, false, &ranges);
  ASSERT_TRUE(ids.ok()) << ids.status();
  ASSERT_EQ(ranges.size(), ids->size());
  ASSERT_FALSE(ranges.empty());
  EXPECT_EQ(ranges.front().first, 0u);
  EXPECT_EQ(ranges.back().second, text.size());
  for (size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_LE(ranges[i - 1].second, ranges[i].first);
    EXPECT_LT(ranges[i].first, ranges[i].second);
  }
}

TEST(TokenRanges, AssembleTellsWhichTextAnIdIsOf) {
  const auto tokenizer = LoadTestTokenizer("bert_uncased");
  const std::vector<int32_t> first = {7, 8}, second = {9};
  const Encoding one = tokenizer->Assemble(first, nullptr);
  EXPECT_EQ(one.texts, (std::vector<int8_t>{-1, 0, 0, -1}));
  EXPECT_EQ(one.type_ids, (std::vector<int32_t>{0, 0, 0, 0}));
  const Encoding both = tokenizer->Assemble(first, &second);
  EXPECT_EQ(both.texts, (std::vector<int8_t>{-1, 0, 0, -1, 1, -1}));
  EXPECT_EQ(both.type_ids, (std::vector<int32_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(both.ids[4], 9);
  EXPECT_EQ(both.ids[3], both.ids[5]);
}

}  // namespace
}  // namespace lanewise
