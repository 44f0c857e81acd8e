#include "runtime/utf8.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

#define FFFD "\xEF\xBF\xBD"

std::string Cleaned(absl::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.Append(bytes);
  return out + stream.Finish();
}

struct Case {
  std::string bytes, text;
};

// The tables of the Unicode standard, section 3.9 (3-8 to 3-11), and edges of
// the ranges.
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"", ""},
      {"plain", "plain"},
      {"h\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80", "hé 你 😀"},
      {"\xC3\x28", FFFD "("},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41",
       FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41",
       FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
       FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", FFFD FFFD FFFD FFFD "A"},
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
      {"\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD},
      {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"},
      {"a\xE4\xBD", "a" FFFD},
      {"\xF0\x9F\x98", FFFD},
      {FFFD, FFFD},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
  };
  return cases;
}

TEST(Utf8, MaximalSubpartsBecomeReplacementCharacters) {
  for (const Case& c : Cases()) {
    EXPECT_EQ(Cleaned(c.bytes), c.text) << testing::PrintToString(c.bytes);
    EXPECT_EQ(IsValidUtf8(c.bytes), c.bytes == c.text);
  }
}

TEST(Utf8, AnySplitGivesTheSameTextInWholeCharacters) {
  for (const Case& c : Cases()) {
    for (size_t first = 0; first <= c.bytes.size(); ++first) {
      for (size_t second = first; second <= c.bytes.size(); ++second) {
        Utf8Stream stream;
        std::string text;
        for (const std::string& piece :
             {stream.Append(c.bytes.substr(0, first)),
              stream.Append(c.bytes.substr(first, second - first)),
              stream.Append(c.bytes.substr(second)), stream.Finish()}) {
          EXPECT_TRUE(IsValidUtf8(piece)) << testing::PrintToString(piece);
          text += piece;
        }
        EXPECT_EQ(text, c.text) << first << " " << second;
      }
    }
  }
}

TEST(Utf8, S16HoldsTheTail) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("\xD7"), "");
  EXPECT_TRUE(stream.incomplete());
  EXPECT_EQ(stream.Append(" x"), FFFD " x");
  EXPECT_EQ(stream.Append("\xD7"), "");
  EXPECT_EQ(stream.Append("\x90"), "\xD7\x90");
  EXPECT_FALSE(stream.incomplete());
  EXPECT_EQ(stream.Append("\xF0\x9F"), "");
  EXPECT_EQ(stream.Finish(), FFFD);
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8, S17JsonOfAnyBytesParses) {
  EXPECT_EQ(JsonString("\xC3\x28"), "\"" FFFD "(\"");
  EXPECT_EQ(JsonString("a\"b\\c\n\r\t\b\x1f/é"),
            "\"a\\\"b\\\\c\\n\\r\\t\\u0008\\u001f/é\"");
  EXPECT_EQ(JsonString(absl::string_view("\0", 1)), "\"\\u0000\"");
  std::string every_pair;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes = {static_cast<char>(first),
                                 static_cast<char>(second)};
      const auto json =
          nlohmann::json::parse(JsonString(bytes), nullptr, false);
      ASSERT_TRUE(json.is_string()) << first << " " << second;
      EXPECT_EQ(*json.get_ptr<const std::string*>(), Cleaned(bytes));
    }
  }
}

}  // namespace
}  // namespace lanewise
