// Normalizers, pre-tokenizers, added tokens, post-processors and decoders,
// each by itself.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/precompiled.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

std::string Normalize(const NormalizerPtr& normalizer, absl::string_view text) {
  AlignedText aligned = AlignedText::From(text, /*keep=*/true, /*base=*/100);
  EXPECT_TRUE(normalizer->Apply(&aligned).ok());
  // Origins ascend, one for each byte and one for the end.
  EXPECT_EQ(aligned.origin.size(), aligned.text.size() + 1);
  EXPECT_TRUE(std::is_sorted(aligned.origin.begin(), aligned.origin.end()));
  EXPECT_EQ(aligned.origin.back(), 100 + text.size());
  AlignedText plain = AlignedText::From(text, /*keep=*/false, 0);
  EXPECT_TRUE(normalizer->Apply(&plain).ok());
  EXPECT_EQ(plain.text, aligned.text);
  return aligned.text;
}

TEST(Normalizer, Bert) {
  const auto bert = MakeBertNormalizer({});
  EXPECT_EQ(Normalize(bert,
                      "\xC3\x84\xE4\xB8\xAD"
                      "B\t\x01\xE2\x80\x8B.\n"),
            "a \xE4\xB8\xAD b ."
            " ");
  BertNormalizerOptions options;
  options.lowercase = false;
  EXPECT_EQ(Normalize(MakeBertNormalizer(options),
                      "\xC3\x84"
                      "B"),
            "\xC3\x84"
            "B");
  options.strip_accents = true;
  EXPECT_EQ(Normalize(MakeBertNormalizer(options),
                      "\xC3\x84"
                      "B"),
            "AB");
  options.clean_text = false;
  options.handle_chinese_chars = false;
  EXPECT_EQ(Normalize(MakeBertNormalizer(options), "\x01\xE4\xB8\xAD"),
            "\x01\xE4\xB8\xAD");
}

TEST(Normalizer, SimpleOnes) {
  EXPECT_EQ(Normalize(MakeStripNormalizer(true, true),
                      " \xC2\xA0"
                      "a b\n"),
            "a b");
  EXPECT_EQ(Normalize(MakeStripNormalizer(true, false), " a "), "a ");
  EXPECT_EQ(Normalize(MakeStripNormalizer(false, true), " a "), " a");
  EXPECT_EQ(Normalize(MakeStripNormalizer(true, true), "  "), "");
  EXPECT_EQ(Normalize(MakeStripAccentsNormalizer(), "e\xCC\x81"), "e");
  EXPECT_EQ(Normalize(MakeLowercaseNormalizer(), "A\xC4\xB0"), "ai\xCC\x87");
  EXPECT_EQ(Normalize(MakePrependNormalizer("_"), "a"), "_a");
  EXPECT_EQ(Normalize(MakePrependNormalizer("_"), ""), "");
  EXPECT_EQ(Normalize(MakeNmtNormalizer(),
                      "a\x01\tb\xE2\x80\x8B"
                      "c"),
            "a b c");
  EXPECT_EQ(Normalize(MakeByteLevelNormalizer(), " a"),
            "\xC4\xA0"
            "a");
  EXPECT_EQ(Normalize(MakeReplaceNormalizer(std::string("ab"), "x"), "aababb"),
            "axxb");
  EXPECT_EQ(Normalize(MakeReplaceNormalizer(std::string(""), "x"), "ab"), "ab");
  auto regex = Regex::Compile(" {2,}");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(Normalize(MakeReplaceNormalizer(*std::move(regex), " "), "a   b "),
            "a b ");
}

TEST(Normalizer, SequenceKeepsOrigins) {
  std::vector<NormalizerPtr> stages;
  stages.push_back(MakePrependNormalizer("_"));
  stages.push_back(MakeUnicodeNormalizer(NormalForm::kNfd));
  stages.push_back(MakeStripAccentsNormalizer());
  const auto sequence = MakeNormalizerSequence(std::move(stages));
  EXPECT_EQ(Normalize(sequence, "x\xC3\xA9y"), "_xey");
  AlignedText text = AlignedText::From("x\xC3\xA9y", true, 0);
  ASSERT_TRUE(sequence->Apply(&text).ok());
  EXPECT_EQ(text.origin.back(), 4u);
  EXPECT_EQ(text.origin[3], 3u);  // y
}

// A character map of two keys, "A" to "b" and "A\xCC\x81" to "c", as a
// double-array trie built by hand would be long: random bytes must be safe.
TEST(Normalizer, PrecompiledSurvivesAnyBytes) {
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    const uint32_t units = 4 + round % 60;
    bytes.append({static_cast<char>(units * 4), 0, 0, 0});
    for (uint32_t i = 0; i < units * 4 + 16; ++i) {
      state = state * 1664525 + 1013904223;
      bytes.push_back(i < units * 4 ? static_cast<char>(state >> 24)
                                    : static_cast<char>(state >> 25));
    }
    const auto normalizer = MakePrecompiledNormalizer(bytes, "test");
    if (!normalizer.ok()) continue;
    AlignedText text =
        AlignedText::From("abc \xC3\xA9 e\xCC\x81 \xE4\xB8\xAD", false, 0);
    ASSERT_TRUE((*normalizer)->Apply(&text).ok());
    EXPECT_EQ(ValidUtf8Prefix(text.text), text.text.size());
  }
  EXPECT_FALSE(MakePrecompiledNormalizer("abc", "test").ok());
  EXPECT_FALSE(
      MakePrecompiledNormalizer(absl::string_view("\x08\0\0\0abcd", 8), "test")
          .ok());
}

Strings Split(const PreTokenizerPtr& stage, const std::string& text,
              bool first = true) {
  Pieces pieces;
  pieces.text = text;
  pieces.pieces = {{0, text.size(), first}};
  EXPECT_TRUE(stage->Apply(&pieces).ok());
  Strings out;
  for (const Piece& piece : pieces.pieces) {
    EXPECT_LT(piece.begin, piece.end);
    out.emplace_back(pieces.Text(piece));
  }
  return out;
}

TEST(PreTokenizer, SplitBehaviors) {
  const std::string text = "the-final--countdown";
  const auto split = [&](SplitBehavior behavior, bool invert = false) {
    return Split(MakeSplitPreTokenizer(std::string("-"), behavior, invert),
                 text);
  };
  EXPECT_EQ(split(SplitBehavior::kRemoved),
            Strings({"the", "final", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kIsolated),
            Strings({"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithPrevious),
            Strings({"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithNext),
            Strings({"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(SplitBehavior::kContiguous),
            Strings({"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kRemoved, /*invert=*/true),
            Strings({"-", "-", "-"}));
}

TEST(PreTokenizer, CharacterClasses) {
  EXPECT_EQ(Split(MakeBertPreTokenizer(), "Hey, you\xE2\x80\x93 $5!"),
            Strings({"Hey", ",", "you", "\xE2\x80\x93", "$", "5", "!"}));
  EXPECT_EQ(Split(MakeWhitespacePreTokenizer(), "a_1 b--c\xC2\xA0(d)"),
            Strings({"a_1", "b", "--", "c", "(", "d", ")"}));
  EXPECT_EQ(Split(MakeWhitespaceSplitPreTokenizer(), " a\tb  c "),
            Strings({"a", "b", "c"}));
  EXPECT_EQ(Split(MakeDigitsPreTokenizer(true), "a12"),
            Strings({"a", "1", "2"}));
  EXPECT_EQ(Split(MakeDigitsPreTokenizer(false), "a12b"),
            Strings({"a", "12", "b"}));
  EXPECT_EQ(Split(MakeDelimiterPreTokenizer(U'|'), "a||b"),
            Strings({"a", "b"}));
  EXPECT_EQ(Split(MakeFixedLengthPreTokenizer(2),
                  "a\xC3\xA4"
                  "bcd"),
            Strings({"a\xC3\xA4", "bc", "d"}));
  EXPECT_EQ(Split(MakeBertPreTokenizer(), ""), Strings());
}

TEST(PreTokenizer, ByteLevel) {
  const auto words = MakeByteLevelPreTokenizer(false, true);
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(Split(*words, "it's  a1\n"), Strings({"it", "'s", "\xC4\xA0",
                                                  "\xC4\xA0"
                                                  "a",
                                                  "1", "\xC4\x8A"}));
  const auto prefix = MakeByteLevelPreTokenizer(true, false);
  ASSERT_TRUE(prefix.ok());
  EXPECT_EQ(Split(*prefix, "a b"), Strings({"\xC4\xA0"
                                            "a\xC4\xA0"
                                            "b"}));
  EXPECT_EQ(Split(*prefix, " a"), Strings({"\xC4\xA0"
                                           "a"}));
}

TEST(PreTokenizer, Metaspace) {
  const auto split = [](PrependScheme scheme, bool cut, const std::string& text,
                        bool first = true) {
    return Split(MakeMetaspacePreTokenizer("_", scheme, cut), text, first);
  };
  EXPECT_EQ(split(PrependScheme::kAlways, true, "a  b"),
            Strings({"_a", "_", "_b"}));
  EXPECT_EQ(split(PrependScheme::kAlways, false, "a b"), Strings({"_a_b"}));
  EXPECT_EQ(split(PrependScheme::kAlways, true, " a"), Strings({"_a"}));
  EXPECT_EQ(split(PrependScheme::kNever, true, "a"), Strings({"a"}));
  EXPECT_EQ(split(PrependScheme::kFirst, true, "a"), Strings({"_a"}));
  EXPECT_EQ(split(PrependScheme::kFirst, true, "a", false), Strings({"a"}));
}

std::string Segments(const AddedTokens& tokens, absl::string_view text,
                     bool special = true) {
  std::vector<std::string> out;
  for (const Segment& segment :
       tokens.Split(text, /*normalized=*/false,
                    [&](size_t, size_t) { return special; })) {
    out.push_back(
        absl::StrCat(segment.id, ":",
                     text.substr(segment.begin, segment.end - segment.begin)));
  }
  return absl::StrJoin(out, "|");
}

AddedTokens MakeAdded(std::vector<AddedToken> tokens) {
  auto added = AddedTokens::Create(std::move(tokens), nullptr, "test");
  EXPECT_TRUE(added.ok()) << added.status();
  return *std::move(added);
}

TEST(AddedTokens, LeftmostLongest) {
  const AddedTokens tokens =
      MakeAdded({{"ab", 1}, {"abcd", 2}, {"bc", 3}, {"cde", 4}});
  EXPECT_EQ(Segments(tokens, "xabcdex"), "-1:x|2:abcd|-1:ex");
  EXPECT_EQ(Segments(tokens, "abcx"), "1:ab|-1:cx");
  EXPECT_EQ(Segments(tokens, ""), "");
  EXPECT_EQ(Segments(tokens, "bcbc"), "3:bc|3:bc");
}

TEST(AddedTokens, T25StripAndSingleWord) {
  AddedToken left{"<l>", 1}, right{"<r>", 2}, single{"word", 3};
  left.lstrip = true;
  right.rstrip = true;
  single.single_word = true;
  const AddedTokens tokens = MakeAdded({left, right, single});
  EXPECT_EQ(Segments(tokens, "a \t<l> b"), "-1:a|1: \t<l>|-1: b");
  EXPECT_EQ(Segments(tokens, "a <r> \n b"), "-1:a |2:<r> \n |-1:b");
  EXPECT_EQ(Segments(tokens, "<r>  <l>"), "2:<r>  |1:<l>");
  EXPECT_EQ(Segments(tokens, "word words aword-word"),
            "3:word|-1: words aword-|3:word");
}

TEST(AddedTokens, T28SpecialOnlyWhereAllowed) {
  AddedToken special{"<s>", 1};
  special.special = true;
  const AddedTokens tokens = MakeAdded({special, {"<s", 2}});
  EXPECT_EQ(Segments(tokens, "<s>"), "1:<s>");
  EXPECT_EQ(Segments(tokens, "<s>", false), "2:<s|-1:>");
}

TEST(AddedTokens, NormalizedTokensAreFoundInNormalizedText) {
  AddedToken token{"WORD", 1};
  token.normalized = true;
  const auto lower = MakeLowercaseNormalizer();
  const auto tokens = AddedTokens::Create({token}, lower.get(), "test");
  ASSERT_TRUE(tokens.ok());
  const auto never = [](size_t, size_t) { return false; };
  EXPECT_EQ(tokens->Split("a word", true, never).size(), 2u);
  EXPECT_EQ(tokens->Split("a WORD", false, never).size(), 1u);
}

TEST(PostProcessor, Templates) {
  const Ids a = {10, 11}, b = {20};
  const PostProcessor bert = BertPostProcessor(1, 2);
  EXPECT_EQ(ApplyTemplate(bert.single, true, a, {}).ids, Ids({1, 10, 11, 2}));
  const Encoded pair = ApplyTemplate(bert.pair, true, a, b);
  EXPECT_EQ(pair.ids, Ids({1, 10, 11, 2, 20, 2}));
  EXPECT_EQ(pair.type_ids, Ids({0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(ApplyTemplate(bert.pair, false, a, b).ids, Ids({10, 11, 20}));
  const Encoded roberta =
      ApplyTemplate(RobertaPostProcessor(1, 2).pair, true, a, b);
  EXPECT_EQ(roberta.ids, Ids({1, 10, 11, 2, 2, 20, 2}));
  EXPECT_EQ(roberta.type_ids, Ids({0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ApplyTemplate(PostProcessor().pair, true, a, b).type_ids,
            Ids({0, 0, 1}));
  EXPECT_EQ(CountTokens(bert.pair), 3u);
}

std::pair<size_t, size_t> CutLengths(size_t first, size_t second,
                                     size_t limit) {
  Ids a(first), b(second);
  Truncation truncation;
  truncation.max_length = limit;
  EXPECT_TRUE(Truncate(truncation, 0, &a, &b).ok());
  return {a.size(), b.size()};
}

TEST(PostProcessor, Truncation) {
  using Lengths = std::pair<size_t, size_t>;
  EXPECT_EQ(CutLengths(3, 10, 8), Lengths(3, 5));
  EXPECT_EQ(CutLengths(10, 3, 8), Lengths(5, 3));
  EXPECT_EQ(CutLengths(10, 10, 7), Lengths(3, 4));
  EXPECT_EQ(CutLengths(2, 3, 8), Lengths(2, 3));
  EXPECT_EQ(CutLengths(5, 5, 0), Lengths(0, 0));
  for (size_t first = 0; first < 9; ++first) {
    for (size_t second = 0; second < 9; ++second) {
      for (size_t limit = 0; limit < 12; ++limit) {
        const Lengths cut = CutLengths(first, second, limit);
        EXPECT_EQ(cut.first + cut.second, std::min(first + second, limit));
      }
    }
  }
  Truncation truncation;
  truncation.max_length = 4;
  truncation.left = true;
  Ids ids = {1, 2, 3, 4, 5};
  EXPECT_TRUE(Truncate(truncation, 2, &ids, nullptr).ok());
  EXPECT_EQ(ids, Ids({4, 5}));
  truncation.strategy = Truncation::Strategy::kOnlySecond;
  Ids other = {6, 7, 8, 9};
  EXPECT_TRUE(Truncate(truncation, 0, &ids, &other).ok());
  EXPECT_EQ(other, Ids({8, 9}));
  truncation.max_length = 1;
  EXPECT_FALSE(Truncate(truncation, 0, &ids, &other).ok());
  EXPECT_FALSE(Truncate(truncation, 0, &ids, nullptr).ok());
}

TEST(PostProcessor, Padding) {
  Padding padding;
  padding.id = 9;
  padding.type_id = 3;
  padding.length = 4;
  Encoded encoded = {{1, 2}, {0, 0}};
  Pad(padding, &encoded);
  EXPECT_EQ(encoded.ids, Ids({1, 2, 9, 9}));
  EXPECT_EQ(encoded.type_ids, Ids({0, 0, 3, 3}));
  padding.length.reset();
  padding.multiple = 3;
  padding.left = true;
  Pad(padding, &encoded);
  EXPECT_EQ(encoded.ids, Ids({9, 9, 1, 2, 9, 9}));
}

std::string Decode(const DecoderPtr& decoder, Strings tokens) {
  decoder->Apply(&tokens);
  return absl::StrJoin(tokens, "|");
}

TEST(Decoder, EachKind) {
  EXPECT_EQ(Decode(MakeByteLevelDecoder(), {"\xC4\xA0"
                                            "a",
                                            "b c", "\xC3\x83"}),
            " ab c\xEF\xBF\xBD");
  EXPECT_EQ(Decode(MakeWordPieceDecoder("##", true),
                   {"do", "##ing", "it", ",", "##x", "n't"}),
            "do|ing| it|,|x|n't");
  EXPECT_EQ(Decode(MakeWordPieceDecoder("##", false), {"a", ","}), "a| ,");
  EXPECT_EQ(
      Decode(MakeMetaspaceDecoder("_", PrependScheme::kAlways), {"_a_b", "_c"}),
      "ab| c");
  EXPECT_EQ(Decode(MakeMetaspaceDecoder("_", PrependScheme::kNever), {"_a"}),
            " a");
  EXPECT_EQ(Decode(MakeBpeDecoder("</w>"), {"a</w>", "b", "c</w>"}), "a |b|c");
  EXPECT_EQ(Decode(MakeCtcDecoder("<pad>", "_", true),
                   {"a", "a", "<pad>", "a", "_", "b"}),
            "a|a| |b");
  EXPECT_EQ(Decode(MakeReplaceDecoder(std::string("_"), " "), {"_a_", "b"}),
            " a |b");
  EXPECT_EQ(Decode(MakeByteFallbackDecoder(),
                   {"x", "<0xC3>", "<0xA4>", "y", "<0xC3>", "<0x4>", "<0xZZ>"}),
            "x|\xC3\xA4|y|\xEF\xBF\xBD|<0x4>|<0xZZ>");
  EXPECT_EQ(Decode(MakeFuseDecoder(), {"a", "b"}), "ab");
  EXPECT_EQ(Decode(MakeStripDecoder(" ", 1, 0), {"  a ", "b"}), " a |b");
  EXPECT_EQ(Decode(MakeStripDecoder(" ", 0, 2), {" a   "}), " a ");
}

TEST(Decoder, NoTokensAreNoText) {
  std::vector<DecoderPtr> all;
  all.push_back(MakeByteLevelDecoder());
  all.push_back(MakeWordPieceDecoder("##", true));
  all.push_back(MakeMetaspaceDecoder("_", PrependScheme::kAlways));
  all.push_back(MakeByteFallbackDecoder());
  all.push_back(MakeFuseDecoder());
  all.push_back(MakeStripDecoder(" ", 1, 1));
  for (const DecoderPtr& decoder : all) EXPECT_EQ(Decode(decoder, {}), "");
  EXPECT_EQ(Decode(MakeDecoderSequence(std::move(all)), {}), "");
}

}  // namespace
}  // namespace lanewise
