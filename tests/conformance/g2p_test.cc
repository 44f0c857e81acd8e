// The encoder-decoder of the tree on what it was made for: words it has not
// seen, against the dictionary and against the reference's output.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

constexpr char kModel[] = "tools/models/g2p_t5";
constexpr size_t kMaxTokens = 40;
constexpr size_t kBeams = 4;

// What the reference reaches, and how far from it one may be.
struct Rates {
  double phonemes, words;
};
constexpr Rates kGreedyRates = {0.1136, 0.3992};
constexpr Rates kBeamRates = {0.1083, 0.3870};
constexpr double kRateTolerance = 0.002;
constexpr double kScoreTolerance = 1e-4;

struct Words {
  std::vector<std::string> spelled;
  std::vector<std::string> phonemes;
};

Words ReadWords() {
  std::ifstream file(std::string(kModel) + "/test.tsv");
  Words words;
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> cells =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    words.spelled.push_back(cells.first);
    words.phonemes.push_back(cells.second);
  }
  return words;
}

// Levenshtein's: insertions, deletions and replacements.
size_t Distance(const std::vector<std::string>& a,
                const std::vector<std::string>& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> Phonemes(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

// Edits over all phonemes of the dictionary, and words that are not it exactly.
Rates ErrorRates(const Words& words, const TranslateResult& found) {
  size_t edits = 0, phonemes = 0, wrong = 0;
  for (size_t i = 0; i < words.spelled.size(); ++i) {
    const auto expected = Phonemes(words.phonemes[i]);
    edits += Distance(Phonemes(found.translations[i].text), expected);
    phonemes += expected.size();
    wrong += found.translations[i].text != words.phonemes[i];
  }
  return {
      static_cast<double>(edits) / static_cast<double>(phonemes),
      static_cast<double>(wrong) / static_cast<double>(words.spelled.size())};
}

TranslateResult Translate(Engine& engine, std::vector<std::string> texts,
                          size_t beams) {
  TranslateRequest request;
  request.texts = std::move(texts);
  request.batch = 200;
  auto options = engine.TranslateDefaults(request);
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return {};
  options->max_tokens = kMaxTokens;
  options->beams.num_beams = static_cast<int32_t>(beams);
  options->beams.num_return_sequences = static_cast<int32_t>(beams);
  request.options = *options;
  const auto result = engine.Translate(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : TranslateResult();
}

class G2pTest : public testing::TestWithParam<ActivationPrecision> {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.activations = GetParam();
    if (GetParam() == ActivationPrecision::kF32) {
      options.cache = CachePrecision::kF32;
    }
    auto engine = Engine::Load(kModel, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  void ExpectRates(size_t beams, const Rates& reference) {
    const Words words = ReadWords();
    ASSERT_EQ(words.spelled.size(), 4000u);
    const TranslateResult found = Translate(*engine_, words.spelled, beams);
    ASSERT_EQ(found.translations.size(), words.spelled.size());
    const Rates rates = ErrorRates(words, found);
    EXPECT_NEAR(rates.phonemes, reference.phonemes, kRateTolerance);
    EXPECT_NEAR(rates.words, reference.words, kRateTolerance);
    std::printf(
        "%zu beams: phoneme error rate %.4f, word error rate %.4f, %.2f s\n",
        beams, rates.phonemes, rates.words,
        found.encode_seconds + found.decode_seconds);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_P(G2pTest, GreedyReachesTheErrorRates) { ExpectRates(1, kGreedyRates); }

TEST_P(G2pTest, BeamsReachTheErrorRates) { ExpectRates(kBeams, kBeamRates); }

INSTANTIATE_TEST_SUITE_P(Activations, G2pTest,
                         testing::Values(ActivationPrecision::kF32,
                                         ActivationPrecision::kNative),
                         [](const auto& param) {
                           return param.param == ActivationPrecision::kF32
                                      ? "Float"
                                      : "Native";
                         });

// The first words, exactly: ids, text, scores of all hypotheses.
TEST(G2p, EqualsTheReferenceWordByWord) {
  EngineOptions options;
  options.activations = ActivationPrecision::kF32;
  options.cache = CachePrecision::kF32;
  auto engine = Engine::Load(kModel, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  std::ifstream file(std::string(kModel) + "/golden.jsonl");
  size_t compared = 0;
  std::vector<std::vector<nlohmann::json>> runs(kBeams + 1);
  for (std::string line; std::getline(file, line);) {
    nlohmann::json run = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(run.is_discarded()) << line;
    runs.at(run["num_beams"].get<size_t>()).push_back(std::move(run));
  }
  for (const size_t beams : {size_t{1}, kBeams}) {
    std::vector<std::string> texts;
    for (const auto& run : runs[beams]) texts.push_back(run["word"]);
    const TranslateResult found = Translate(**engine, texts, beams);
    ASSERT_EQ(found.translations.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const nlohmann::json& run = runs[beams][i];
      const Translation& translation = found.translations[i];
      EXPECT_EQ(translation.text, run["text"].get<std::string>()) << texts[i];
      EXPECT_EQ(translation.source_tokens, run["input_ids"].size());
      ASSERT_EQ(run["ids"].size(), beams);
      if (beams == 1) {
        EXPECT_EQ(nlohmann::json(translation.ids), run["ids"][0]) << texts[i];
      }
      for (size_t j = 0; j < translation.hypotheses.size(); ++j) {
        const Hypothesis& hypothesis = translation.hypotheses[j];
        EXPECT_EQ(nlohmann::json(hypothesis.ids), run["ids"][j]) << texts[i];
        EXPECT_NEAR(hypothesis.score, run["scores"][j].get<double>(),
                    kScoreTolerance);
      }
      EXPECT_EQ(translation.hypotheses.size(), beams == 1 ? 0 : beams);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 400u);
}

}  // namespace
}  // namespace lanewise
