// Filters and processors against the recorded results of the reference
// (tests/data/kernels/sampling.json says what they are).
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"
#include "runtime/sampler.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr char kStem[] = "tests/data/kernels/sampling";

template <class T>
struct Rows {
  size_t rows = 0, columns = 0;
  std::vector<T> values;

  absl::Span<const T> Row(size_t row) const {
    return absl::MakeConstSpan(values).subspan(row * columns, columns);
  }
};

class SamplerGolden : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(std::string(kStem) + ".json");
    std::stringstream text;
    text << in.rdbuf();
    golden_ = nlohmann::json::parse(text.str(), nullptr, false);
    ASSERT_TRUE(golden_.is_object());
    auto file = SafetensorsFile::Open(std::string(kStem) + ".safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = std::make_unique<SafetensorsFile>(std::move(file).value());
  }

  template <class T>
  Rows<T> Read(const nlohmann::json& name) {
    const Tensor* tensor = file_->Find(name.get<std::string>());
    if (tensor == nullptr || tensor->shape.size() != 2) {
      ADD_FAILURE() << name;
      return {};
    }
    Rows<T> rows{tensor->shape[0], tensor->shape[1], {}};
    rows.values.resize(rows.rows * rows.columns);
    EXPECT_EQ(tensor->data.size(), rows.values.size() * sizeof(T));
    std::memcpy(rows.values.data(), tensor->data.data(), tensor->data.size());
    return rows;
  }

  // Fails on a parameter this function does not know.
  static SamplingOptions Options(const nlohmann::json& params) {
    SamplingOptions options;
    options.temperature = 1.0;
    options.seed = 1;
    const std::map<std::string, double SamplingOptions::*> numbers = {
        {"temperature", &SamplingOptions::temperature},
        {"top_p", &SamplingOptions::top_p},
        {"min_p", &SamplingOptions::min_p},
        {"typical_p", &SamplingOptions::typical_p},
        {"epsilon_cutoff", &SamplingOptions::epsilon_cutoff},
        {"repetition_penalty", &SamplingOptions::repetition_penalty},
    };
    for (const auto& [key, value] : params.items()) {
      if (key == "top_k") {
        options.top_k = value.get<int32_t>();
      } else if (key == "no_repeat_ngram_size") {
        options.no_repeat_ngram = value.get<int32_t>();
      } else if (const auto field = numbers.find(key); field != numbers.end()) {
        options.*field->second = value.get<double>();
      } else {
        ADD_FAILURE() << "unknown parameter " << key;
      }
    }
    return options;
  }

  nlohmann::json golden_;
  std::unique_ptr<SafetensorsFile> file_;
};

TEST_F(SamplerGolden, FilteredProbabilities) {
  size_t compared = 0;
  ForEachTarget([&](const Target& target) {
    for (const nlohmann::json& one : golden_["cases"]) {
      if (!one["outputs"].contains("probs")) continue;
      SCOPED_TRACE(one["name"].get<std::string>());
      const auto logits = Read<float>(one["inputs"]["logits"]);
      const auto probs = Read<float>(one["outputs"]["probs"]);
      const auto kept = Read<int32_t>(one["outputs"]["kept"]);
      const auto sampler =
          Sampler::Create(Options(one["params"]), {logits.columns, {}});
      ASSERT_TRUE(sampler.ok()) << sampler.status();
      SamplerScratch scratch(logits.columns);
      for (size_t row = 0; row < logits.rows; ++row) {
        const auto tokens =
            sampler->Distribution(target, {logits.Row(row), {}}, scratch);
        ASSERT_TRUE(tokens.ok()) << tokens.status();
        std::vector<double> found(logits.columns, 0.0);
        for (const TokenProbability& token : *tokens) {
          found[token.id] = token.probability;
          EXPECT_EQ(kept.Row(row)[token.id], 1) << row << " " << token.id;
        }
        size_t kept_count = 0;
        for (const int32_t keep : kept.Row(row)) kept_count += keep == 1;
        EXPECT_EQ(tokens->size(), kept_count) << row;
        // 1e-5 of the largest output.
        const double tolerance = 1e-5 * tokens->front().probability;
        for (size_t id = 0; id < logits.columns; ++id) {
          EXPECT_NEAR(found[id], probs.Row(row)[id], tolerance) << row << id;
        }
        ++compared;
      }
    }
  });
  EXPECT_EQ(compared, Target::Available().size() * 23 * 4);
}

TEST_F(SamplerGolden, Processors) {
  size_t compared = 0;
  for (const nlohmann::json& one : golden_["cases"]) {
    const nlohmann::json& outputs = one["outputs"];
    if (outputs.contains("probs")) continue;
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto logits = Read<float>(one["inputs"]["logits"]);
    const auto ids = Read<int32_t>(one["inputs"]["input_ids"]);
    const bool bans = outputs.contains("processed_allowed");
    const auto expected =
        bans ? Rows<float>() : Read<float>(outputs["processed"]);
    const auto allowed =
        bans ? Read<int32_t>(outputs["processed_allowed"]) : Rows<int32_t>();
    const auto processors =
        LogitsProcessors::Create(Options(one["params"]), logits.columns, {});
    ASSERT_TRUE(processors.ok()) << processors.status();
    IdCounts counts(logits.columns);
    for (size_t row = 0; row < logits.rows; ++row) {
      const auto input = logits.Row(row);
      std::vector<float> scores(input.begin(), input.end());
      const TokenHistory history{ids.Row(row), ids.columns};
      processors->Apply(history, absl::MakeSpan(scores), counts);
      for (size_t id = 0; id < scores.size(); ++id) {
        if (bans) {
          EXPECT_EQ(scores[id] == input[id], allowed.Row(row)[id] == 1);
          EXPECT_EQ(std::isinf(scores[id]), allowed.Row(row)[id] == 0);
        } else {
          EXPECT_FLOAT_EQ(scores[id], expected.Row(row)[id]) << row << id;
        }
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6u * 4u);
}

}  // namespace
}  // namespace lanewise
