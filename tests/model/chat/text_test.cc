// Text, characters, numbers and dates below the language.
#include "model/chat/text.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/chat/repr.h"
#include "model/chat/strftime.h"
#include "model/chat/text_ops.h"
#include "model/chat/unicode.h"

namespace lanewise::chat {
namespace {

using Ranges = std::vector<Text::Range>;

TEST(ChatText, AdjacentRangesMerge) {
  Text t = Text::Input("ab");
  t.Append(Text::Input("c"));
  t.AppendTemplate("--");
  t.Append(Text::Input(""));
  t.Append(Text::Input("d"));
  EXPECT_EQ(t.bytes(), "abc--d");
  EXPECT_EQ(t.input(), (Ranges{{0, 3}, {5, 6}}));
}

// Every slice has the origins of its characters, one by one.
TEST(ChatText, SlicesOfAllBounds) {
  Text t;
  std::string origin;
  for (int i = 0; i < 12; ++i) {
    const bool input = i % 5 == 1 || i % 3 == 0;
    t.Append(Text::Derived("x", input));
    origin += input ? 'i' : 't';
  }
  for (size_t begin = 0; begin <= 13; ++begin) {
    for (size_t n = 0; n <= 13; ++n) {
      const Text slice = t.Substr(begin, n);
      std::string found(slice.size(), 't');
      for (const auto& [b, e] : slice.input()) {
        for (size_t i = b; i < e; ++i) found[i] = 'i';
      }
      EXPECT_EQ(found, begin <= 12 ? origin.substr(begin, n) : "");
    }
  }
}

TEST(ChatText, FindLinearIsFind) {
  // All strings over {a, b} of length 12, long needles with many borders.
  const std::string needle = "abaababaabaababaababa";
  for (int bits = 0; bits < 4096; bits += 7) {
    std::string s;
    for (int i = 0; i < 12; ++i) s += (bits >> i & 1) != 0 ? 'a' : 'b';
    s = s + needle.substr(0, 20) + needle + s;
    for (const size_t from : {size_t{0}, size_t{13}, size_t{40}, s.size()}) {
      EXPECT_EQ(FindLinear(s, needle, from), s.find(needle, from));
    }
  }
}

TEST(ChatText, Utf8) {
  EXPECT_TRUE(ValidUtf8("aé안😀"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xC3", "a\xF0\x9F\x98"}) {
    EXPECT_FALSE(ValidUtf8(bad)) << bad;
  }
  EXPECT_EQ(CountCodePoints("aé안😀"), 4u);
  EXPECT_EQ(ByteOffset("aé안😀", 2), 3u);
  EXPECT_EQ(ByteOffset("aé", 9), 3u);
}

TEST(ChatText, FloatRepr) {
  EXPECT_EQ(FloatRepr(0.1), "0.1");
  EXPECT_EQ(FloatRepr(-0.0), "-0.0");
  EXPECT_EQ(FloatRepr(1e16), "1e+16");
  EXPECT_EQ(FloatRepr(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(FloatRepr(0.0001), "0.0001");
  EXPECT_EQ(FloatRepr(0.00001), "1e-05");
  EXPECT_EQ(FloatRepr(1.5e300), "1.5e+300");
  EXPECT_EQ(FloatRepr(5e-324), "5e-324");
  EXPECT_EQ(FloatRepr(std::numeric_limits<double>::max()),
            "1.7976931348623157e+308");
  EXPECT_EQ(FloatRepr(std::numeric_limits<double>::infinity()), "inf");
}

TEST(ChatText, StrfTime) {
  // A leap day, the first and last days of years whose ISO year differs.
  EXPECT_EQ(*StrfTime("%F %j %a", 951782400), "2000-02-29 060 Tue");
  EXPECT_EQ(*StrfTime("%G-W%V-%u", 1609459199), "2020-W53-4");
  EXPECT_EQ(*StrfTime("%G-W%V-%u", 1609459200), "2020-W53-5");
  EXPECT_EQ(*StrfTime("%G-W%V-%u", 1735603200), "2025-W01-2");
  EXPECT_EQ(*StrfTime("%I %p %l %k", 0), "12 AM 12  0");
  EXPECT_FALSE(StrfTime("%Y", -1).ok());
  EXPECT_FALSE(StrfTime("%Y", std::numeric_limits<int64_t>::max()).ok());
  EXPECT_EQ(*StrfTime("100%", 0), "100%");
}

TEST(ChatText, SplitLinesAndStrip) {
  const auto lines = SplitLines(Text::Template("a\r\nb\n\nc\n"), false);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1].bytes(), "b");
  EXPECT_EQ(lines[2].bytes(), "");
  EXPECT_EQ(Strip(Text::Template("\u00a0é\u2003"), Side::kBoth, "").bytes(),
            "é");
  EXPECT_EQ(Strip(Text::Template("éaé"), Side::kLeft, "éx").bytes(), "aé");
}

}  // namespace
}  // namespace lanewise::chat
