#include "runtime/stop_strings.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"

namespace lanewise {
namespace {

StopStrings Make(std::vector<std::string> strings) {
  return StopStrings::Create(std::move(strings)).value();
}

// The definition, the slow way: the end of the first stop string that
// completes, the longest of those; {cut, index}, index -1 for none.
std::pair<size_t, int> Cut(const std::string& text,
                           const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    int best = -1;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (absl::EndsWith(absl::string_view(text).substr(0, end), stops[i]) &&
          (best < 0 || stops[i].size() > stops[best].size())) {
        best = static_cast<int>(i);
      }
    }
    if (best >= 0) return {end - stops[best].size(), best};
  }
  return {text.size(), -1};
}

TEST(StopStrings, S13TextThatOnlyLookedLikeAStopIsFlushed) {
  const StopStrings stops = Make({"\nUser:", "###"});
  StopFilter filter(&stops);
  EXPECT_EQ(filter.Append("Hello\nUs"), "Hello");
  EXPECT_EQ(filter.Append("ual"), "\nUsual");
  EXPECT_EQ(filter.Append("##"), "");
  EXPECT_FALSE(filter.stopped());
  EXPECT_EQ(filter.Finish(), "##");
}

TEST(StopStrings, CutsAcrossPieces) {
  const StopStrings stops = Make({"STOP"});
  StopFilter filter(&stops);
  EXPECT_EQ(filter.Append("one S"), "one ");
  EXPECT_EQ(filter.Append("T"), "");
  EXPECT_EQ(filter.Append("OP two STOP"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.stop_index(), 0);
  EXPECT_EQ(filter.Append("three"), "");
  EXPECT_EQ(filter.Finish(), "");
}

TEST(StopStrings, FirstToCompleteThenLongest) {
  const auto shown = [](std::vector<std::string> strings,
                        absl::string_view text, int* index) {
    const StopStrings stops = Make(std::move(strings));
    StopFilter filter(&stops);
    std::string out = filter.Append(text);
    out += filter.Finish();
    *index = filter.stop_index();
    return out;
  };
  int index = -2;
  EXPECT_EQ(shown({"abcd", "bc"}, "xabcd", &index), "xa");
  EXPECT_EQ(index, 1);
  EXPECT_EQ(shown({"bc", "abc"}, "xabcd", &index), "x");
  EXPECT_EQ(index, 1);
  EXPECT_EQ(shown({"ab", "ab"}, "xab", &index), "x");
  EXPECT_EQ(index, 0);
  EXPECT_EQ(shown({}, "xab", &index), "xab");
  EXPECT_EQ(index, -1);
  EXPECT_EQ(shown({"aab"}, "aaab", &index), "a");
  EXPECT_EQ(index, 0);
}

TEST(StopStrings, NoStopsPassEverythingAtOnce) {
  StopFilter none(nullptr);
  EXPECT_EQ(none.Append("ab"), "ab");
  const StopStrings empty;
  StopFilter filter(&empty);
  EXPECT_EQ(filter.Append("ab"), "ab");
  EXPECT_EQ(filter.Finish(), "");
}

TEST(StopStrings, RefusesWhatCannotBeAStop) {
  EXPECT_EQ(StopStrings::Create({"a", ""}).status().message(),
            "stop_strings[1]: expected at least one character, found \"\"");
  EXPECT_EQ(StopStrings::Create({"\xA9"}).status().message(),
            "stop_strings[0]: expected UTF-8, found \"\\xa9\"");
  const std::string half(StopStrings::kMaxTotalBytes / 2, 'a');
  EXPECT_TRUE(StopStrings::Create({half, half}).ok());
  EXPECT_EQ(StopStrings::Create({half, half, "a"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StopStrings, StreamEqualsWholeOnRandomSplits) {
  TestBits random(1);
  int stopped = 0, held = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto word = [&](size_t longest) {
      std::string out(1 + random.Below(longest), 'a');
      for (char& c : out) c = "abc"[random.Below(3)];
      return out;
    };
    std::vector<std::string> strings(random.Below(5));
    for (std::string& s : strings) s = word(6);
    const std::string text = word(60);
    const auto [cut, index] = Cut(text, strings);
    const StopStrings stops = Make(strings);
    StopFilter filter(&stops);
    std::string shown;
    for (size_t i = 0; i < text.size() && !filter.stopped();) {
      const size_t n = 1 + random.Below(7);
      shown += filter.Append(absl::string_view(text).substr(i, n));
      i += n;
      // Nothing that was shown is ever cut, and only a beginning is held back.
      ASSERT_LE(shown.size(), cut);
      if (!filter.stopped()) {
        const std::string rest =
            text.substr(shown.size(), std::min(i, text.size()) - shown.size());
        const bool begins =
            rest.empty() || std::any_of(strings.begin(), strings.end(),
                                        [&](const std::string& s) {
                                          return absl::StartsWith(s, rest);
                                        });
        ASSERT_TRUE(begins) << rest;
        held += !rest.empty();
      }
    }
    shown += filter.Finish();
    ASSERT_EQ(shown, text.substr(0, cut));
    ASSERT_EQ(filter.stop_index() >= 0, index >= 0);
    if (index >= 0) {
      ASSERT_EQ(strings[filter.stop_index()], strings[index]);
      ++stopped;
    }
  }
  EXPECT_GT(stopped, 500);
  EXPECT_GT(held, 500);
}

// One byte a time, a stop string of a's with a b: quadratic methods need 10^12
// steps here.
TEST(StopStrings, LinearTime) {
  const std::string a(500000, 'a');
  const StopStrings stops = Make({a + "b", "ab" + a, "aaaaac"});
  StopFilter filter(&stops);
  size_t shown = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000000; ++i) shown += filter.Append("a").size();
  shown += filter.Finish().size();
  const auto elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(shown, 1000000u);
  EXPECT_LT(std::chrono::duration<double>(elapsed).count(), 20.0);
}

}  // namespace
}  // namespace lanewise
