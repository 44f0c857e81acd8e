// Entities and answers out of scores of tokens.
#include "runtime/classify_spans.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"

namespace lanewise {
namespace {

const std::vector<std::string> kLabels = {"O",     "B-PER", "I-PER",
                                          "B-LOC", "I-LOC", "MISC"};

// Tokens of four bytes with a space behind each; "+" marks what continues a
// word.
std::vector<LabeledToken> Tokens(
    const std::vector<std::tuple<size_t, double, bool>>& parts) {
  std::vector<LabeledToken> tokens;
  size_t begin = 0;
  for (const auto& [label, score, continues] : parts) {
    tokens.push_back({label, score, begin, begin + 4, continues});
    begin += 5;
  }
  return tokens;
}

std::string Text(const std::vector<Entity>& entities) {
  std::string text;
  for (const Entity& entity : entities) {
    text += entity.label + " " + std::to_string(entity.begin) + "-" +
            std::to_string(entity.end) + " " +
            std::to_string(std::lround(entity.score * 100)) + "; ";
  }
  return text;
}

TEST(GroupTokens, NoneKeepsEachTokenButThoseOutside) {
  const auto tokens =
      Tokens({{1, 0.9, false}, {0, 0.8, false}, {2, 0.7, true}});
  EXPECT_EQ(Text(GroupTokens(tokens, kLabels, Aggregation::kNone)),
            "B-PER 0-4 90; I-PER 10-14 70; ");
}

TEST(GroupTokens, SimpleJoinsNeighboursOfOneLabel) {
  const auto tokens = Tokens({{1, 0.9, false},
                              {2, 0.5, false},
                              {1, 0.6, false},  // B: a new one
                              {4, 0.8, false},  // another label
                              {4, 0.4, false},
                              {0, 0.9, false},
                              {0, 0.9, false},
                              {5, 0.3, false},  // without a prefix
                              {5, 0.5, false}});
  EXPECT_EQ(Text(GroupTokens(tokens, kLabels, Aggregation::kSimple)),
            "PER 0-9 70; PER 10-14 60; LOC 15-24 60; MISC 35-44 40; ");
  EXPECT_EQ(Text(GroupTokens({}, kLabels, Aggregation::kSimple)), "");
}

TEST(GroupTokens, FirstGivesAWordTheLabelOfItsFirstToken) {
  const auto tokens = Tokens({{1, 0.9, false},
                              {4, 0.5, true},   // of the same word
                              {0, 0.6, true},   // too
                              {2, 0.7, false},  // the next word
                              {3, 0.8, true},
                              {0, 0.8, false},
                              {3, 0.8, true}});
  EXPECT_EQ(Text(GroupTokens(tokens, kLabels, Aggregation::kFirst)),
            "PER 0-24 80; ");
  // Whatever the first token says, it begins a word.
  const auto odd = Tokens({{1, 0.9, true}, {4, 0.5, true}});
  EXPECT_EQ(Text(GroupTokens(odd, kLabels, Aggregation::kFirst)),
            "PER 0-9 90; ");
}

struct Reference {
  size_t first, last;
  double score;
};

// All spans, sorted.
std::vector<Reference> AllSpans(const SpanLogits& logits, size_t max_tokens) {
  const size_t n = logits.in_text.size();
  const auto probability = [&](const std::vector<float>& x, size_t at) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      if (i == 0 || logits.in_text[i]) sum += std::exp(double{x[i]} - x[at]);
    }
    return 1 / sum;
  };
  std::vector<Reference> spans;
  for (size_t i = 1; i < n; ++i) {
    for (size_t j = i; j < n && j < i + max_tokens; ++j) {
      if (!logits.in_text[i] || !logits.in_text[j]) continue;
      spans.push_back(
          {i, j, probability(logits.start, i) * probability(logits.end, j)});
    }
  }
  std::stable_sort(
      spans.begin(), spans.end(),
      [](const Reference& a, const Reference& b) { return a.score > b.score; });
  return spans;
}

TEST(BestSpans, AreTheBestOfAll) {
  TestBits random(7);
  for (const size_t n : {1, 2, 5, 17, 40}) {
    for (const size_t max_tokens : {1, 3, 15}) {
      SpanLogits logits;
      for (size_t i = 0; i < n; ++i) {
        logits.start.push_back(static_cast<float>(6 * random.Uniform() - 3));
        logits.end.push_back(static_cast<float>(6 * random.Uniform() - 3));
        logits.in_text.push_back(i > 2 && i % 7 != 6);
      }
      const auto expected = AllSpans(logits, max_tokens);
      for (const size_t top_k : {1, 4}) {
        const auto found = BestSpans(logits, max_tokens, top_k);
        ASSERT_EQ(found.size(), std::min(top_k, expected.size()));
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].first, expected[i].first);
          EXPECT_EQ(found[i].last, expected[i].last);
          EXPECT_NEAR(found[i].score, expected[i].score, 1e-12);
        }
      }
    }
  }
}

TEST(BestSpans, LargeLogitsStayFinite) {
  SpanLogits logits = {{-1e4f, 1e4f, -3e38f}, {0, 3e38f, -3e38f}, {}};
  logits.in_text = {false, true, true};
  const auto found = BestSpans(logits, 2, 3);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].first, 1u);
  EXPECT_EQ(found[0].last, 1u);
  EXPECT_DOUBLE_EQ(found[0].score, 1.0);
  EXPECT_EQ(found[2].score, 0.0);
}

TEST(BestSpans, WithoutATextThereIsNone) {
  EXPECT_TRUE(BestSpans({{1, 2}, {3, 4}, {false, false}}, 5, 3).empty());
  EXPECT_TRUE(BestSpans({}, 5, 3).empty());
}

}  // namespace
}  // namespace lanewise
