#include "model/tokenizer/unicode.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "model/tokenizer/byte_level.h"

namespace lanewise {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

std::string Normal(NormalForm form, absl::string_view text) {
  std::string out;
  AppendNormalForm(form, text, &out);
  return out;
}

TEST(Unicode, EveryCodePointRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, &text);
    ASSERT_EQ(ValidUtf8Prefix(text), text.size()) << c;
    ASSERT_EQ(Utf8Length(static_cast<unsigned char>(text[0])), text.size());
    size_t pos = 0;
    ASSERT_EQ(NextCodePoint(text, &pos), c);
    ASSERT_EQ(pos, text.size());
    ASSERT_EQ(PreviousCodePoint(text, &pos), c);
    ASSERT_EQ(pos, 0u);
  }
}

// Unicode 16, section 3.9, tables 3-8 to 3-11: one U+FFFD for each maximal
// part.
TEST(Unicode, T23MaximalPartsAreReplaced) {
  const std::pair<std::string, int> cases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82", 8},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF", 8},
      {"\xF4\x91\x92\x93\xFF\x80\xBF", 7},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF", 4},
      {"\xE6\xAD", 1},
      {"\xF0\x9F\x98", 1},
      {"\x80", 1},
  };
  for (const auto& [bytes, count] : cases) {
    std::string expected;
    for (int i = 0; i < count; ++i) expected += kReplacement;
    EXPECT_EQ(ReplaceInvalidUtf8(bytes), expected);
    EXPECT_EQ(ReplaceInvalidUtf8("A" + bytes + "B"), "A" + expected + "B");
    EXPECT_EQ(ValidUtf8Prefix("A" + bytes), 1u);
  }
  std::vector<size_t> offsets;
  EXPECT_EQ(ReplaceInvalidUtf8("\xE6\xAD"
                               "b",
                               &offsets),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(offsets, std::vector<size_t>({0, 0, 0, 2, 3}));
}

TEST(Unicode, NormalForms) {
  const std::string composed = "\xC3\xA9", apart = "e\xCC\x81";
  EXPECT_EQ(Normal(NormalForm::kNfc, apart), composed);
  EXPECT_EQ(Normal(NormalForm::kNfd, composed), apart);
  EXPECT_EQ(Normal(NormalForm::kNfc, "x" + apart + "y" + apart),
            "x" + composed + "y" + composed);
  // The fi ligature and a full-width letter.
  EXPECT_EQ(Normal(NormalForm::kNfkc, "\xEF\xAC\x81\xEF\xBC\xA1"), "fiA");
  EXPECT_EQ(Normal(NormalForm::kNfc, "\xEF\xAC\x81"), "\xEF\xAC\x81");
  // Hangul: U+AC01 is U+1100 U+1161 U+11A8.
  EXPECT_EQ(Normal(NormalForm::kNfd, "\xEA\xB0\x81"),
            "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");
  EXPECT_EQ(Normal(NormalForm::kNfc, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"),
            "\xEA\xB0\x81");
  // Marks in order of class: dot below (220) before acute (230).
  EXPECT_EQ(Normal(NormalForm::kNfd, "a\xCC\x81\xCC\xA3"), "a\xCC\xA3\xCC\x81");
  // Excluded from composition: U+0958.
  EXPECT_EQ(Normal(NormalForm::kNfc, "\xE0\xA5\x98"),
            "\xE0\xA4\x95\xE0\xA4\xBC");
}

TEST(Unicode, NormalFormsOfEveryCharacterAreStable) {
  for (char32_t c = 0; c <= 0x2FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, &text);
    for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfd,
                                  NormalForm::kNfkc, NormalForm::kNfkd}) {
      const std::string once = Normal(form, text);
      ASSERT_EQ(Normal(form, once), once) << c;
    }
    ASSERT_EQ(Normal(NormalForm::kNfd, Normal(NormalForm::kNfc, text)),
              Normal(NormalForm::kNfd, text));
  }
}

TEST(Unicode, Lowercase) {
  const auto lower = [](char32_t c) {
    std::string out;
    AppendLowercase(c, &out);
    return out;
  };
  EXPECT_EQ(lower('A'), "a");
  EXPECT_EQ(lower('['), "[");
  EXPECT_EQ(lower(0xC4), "\xC3\xA4");
  EXPECT_EQ(lower(0x130), "i\xCC\x87");  // İ has two characters
  EXPECT_EQ(lower(0x3A3), "\xCF\x83");   // Σ, never the final form
  EXPECT_EQ(lower(0x10400), "\xF0\x90\x90\xA8");
}

TEST(Unicode, Classes) {
  for (const char32_t c : {U' ', U'\t', U'\v', U'\x85', U'\xA0', U'\u3000'}) {
    EXPECT_TRUE(IsWhitespace(c));
  }
  for (const char32_t c : {U'\u200B', U'\u180E', U'\uFEFF', U'a'}) {
    EXPECT_FALSE(IsWhitespace(c));
  }
  EXPECT_TRUE(IsPunctuation(U'\u2013'));
  EXPECT_TRUE(IsPunctuation(U'_'));
  EXPECT_FALSE(IsPunctuation(U'$'));
  EXPECT_TRUE(IsAsciiPunctuation(U'$'));
  EXPECT_FALSE(IsAsciiPunctuation(U'\u2013'));
  EXPECT_TRUE(IsNumeric(U'\u00BD'));
  EXPECT_TRUE(IsNumeric(U'\u2167'));
  EXPECT_FALSE(IsNumeric(U'x'));
  EXPECT_TRUE(IsMark(0x903));
  EXPECT_FALSE(IsNonspacingMark(0x903));  // spacing
  EXPECT_TRUE(IsNonspacingMark(0x301));
  EXPECT_TRUE(IsOther(0x200B));
  EXPECT_FALSE(IsOther(0x378));  // unassigned
  EXPECT_TRUE(IsWordCharacter(U'_'));
  EXPECT_TRUE(IsWordCharacter(0x301));
  EXPECT_TRUE(IsWordCharacter(0x200D));
  EXPECT_FALSE(IsWordCharacter(U'\u00BD'));
  EXPECT_FALSE(IsWordCharacter(U'-'));
}

// The reference takes categories from Unicode 8 and normal forms from Unicode
// 9; that its results are these was recorded.
TEST(Unicode, T11NewerCharactersAreAsTheReferenceHasThem) {
  for (const char32_t c : {0x61D, 0xA76, 0xC77, 0x2E43, 0x2E5D, 0x10EAD}) {
    EXPECT_FALSE(IsPunctuation(c)) << c;
  }
  for (const char32_t c : {0x7FD, 0x8D3, 0x8E2, 0xC3C, 0x1DF6, 0xA8C5}) {
    EXPECT_FALSE(IsNonspacingMark(c)) << c;
  }
  for (const char32_t c : {0x7FD, 0x8D3, 0xC3C, 0x1DF6, 0x111C9}) {
    EXPECT_FALSE(IsMark(c)) << c;
  }
  for (const char32_t c : {0x8E1, 0xA8C5, 0x1CF2, 0x1885}) {  // of Unicode 9
    EXPECT_TRUE(IsMark(c)) << c;
  }
  for (const char32_t c : {0x890, 0x110CD, 0x13430}) {
    EXPECT_FALSE(IsOther(c)) << c;
  }
  // Those whose category has changed since.
  EXPECT_TRUE(IsPunctuation(0x166D));
  EXPECT_TRUE(IsPunctuation(0x111C9));
  EXPECT_TRUE(IsNonspacingMark(0x1734));
  EXPECT_TRUE(IsNonspacingMark(0x1171E));
  EXPECT_FALSE(IsNonspacingMark(0x1885));
  EXPECT_FALSE(IsNonspacingMark(0xA9BD));
  // The square of an era that began in 2019, and its elder.
  EXPECT_EQ(Normal(NormalForm::kNfkc, "\xE3\x8B\xBF"), "\xE3\x8B\xBF");
  EXPECT_EQ(Normal(NormalForm::kNfkc, "\xE3\x8D\xBB"),
            "\xE5\xB9\xB3\xE6\x88\x90");
  // A newer mark keeps its place before an older one, which does not compose
  // across it.
  const std::string marked = "e\xDF\xBD\xCC\x81";
  EXPECT_EQ(Normal(NormalForm::kNfc, marked), marked);
  EXPECT_EQ(Normal(NormalForm::kNfd, marked), marked);
  EXPECT_EQ(Normal(NormalForm::kNfc,
                   "e\xCC\x81\xDF\xBD"
                   "e\xCC\x81"),
            "\xC3\xA9\xDF\xBD\xC3\xA9");
}

TEST(Unicode, Graphemes) {
  const std::string text =
      "e\xCC\x81x\r\n\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x87\xAB";
  std::vector<size_t> ends;
  for (size_t pos = 0; pos < text.size();) {
    pos = GraphemeEnd(text, pos);
    ends.push_back(pos);
  }
  EXPECT_EQ(ends, std::vector<size_t>({3, 4, 6, 14, 18}));
}

TEST(ByteLevel, EveryByteRoundTrips) {
  std::vector<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    std::string token, back;
    AppendByteLevel(bytes, &token);
    AppendByteLevelDecoded(token, &back);
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), token), 0);
    seen.push_back(token);
  }
  std::string space;
  AppendByteLevel(" ", &space);
  EXPECT_EQ(space, "\xC4\xA0");  // Ġ
}

TEST(ByteLevel, OtherCharactersStay) {
  for (const char* token : {"\xE2\x96\x81x", "a b", "\xC5\xBF", "\n"}) {
    std::string text;
    AppendByteLevelDecoded(token, &text);
    EXPECT_EQ(text, token);
  }
}

}  // namespace
}  // namespace lanewise
