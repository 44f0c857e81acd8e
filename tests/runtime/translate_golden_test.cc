// Every recorded generation of the suite's encoder-decoders for text, through
// the public API: ids of all rows, scores of all hypotheses.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "golden_root.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/run_params.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

constexpr double kScoreTolerance = 1e-4;

// Where a model has no tokenizer of its own: the ids are given.
constexpr char kTokenizer[] =
    R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})";

std::vector<std::string> Cases() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  std::vector<std::string> cases;
  for (const auto& entry : fs::directory_iterator(
           golden.empty() ? "tests/data/models"
                          : golden + "/models/encoder-decoder")) {
    const auto folder = CaseFolder::Open(entry.path().string());
    if (!folder.ok() ||
        folder->json().value("family", "") != "encoder-decoder" ||
        !fs::exists(entry.path() / "generation_config.json") ||
        folder->json().value("model_type", "") == "whisper") {
      continue;
    }
    cases.push_back(entry.path().string());
  }
  return cases;
}

// A folder that shows the files of `source`, with a tokenizer.
std::string WithTokenizer(const fs::path& source) {
  const fs::path folder =
      fs::path(testing::TempDir()) / "translate" / source.filename();
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(source)) {
    fs::create_symlink(fs::canonical(entry.path()),
                       folder / entry.path().filename());
  }
  if (!fs::exists(folder / "tokenizer.json")) {
    std::ofstream(folder / "tokenizer.json") << kTokenizer;
  }
  return folder.string();
}

// Of a run that says everything itself.
TranslateOptions OptionsOf(const RunParams& params) {
  TranslateOptions options;
  options.beams = params.beams;
  options.sampling = params.processors;
  options.max_tokens = params.max_new_tokens;
  options.start_id = params.start_id;
  options.end_ids = params.eos_ids;
  return options;
}

Ids WithoutPadding(absl::Span<const int32_t> row, int32_t pad) {
  Ids ids(row.begin() + 1, row.end());  // without the start token
  while (!ids.empty() && ids.back() == pad) ids.pop_back();
  return ids;
}

void ExpectRun(Engine& engine, const CaseFolder& golden,
               const nlohmann::json& run) {
  const auto rows = golden.Rows(run["inputs"]);
  ASSERT_TRUE(rows.ok()) << rows.status();
  TranslateRequest request;
  request.ids = rows->ids;
  if (run["params"].is_object()) {
    const auto params = ReadRunParams(run);
    ASSERT_TRUE(params.ok()) << params.status();
    request.options = OptionsOf(*params);
  }  // else generation_config.json decides
  const auto found = engine.Translate(request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const auto expected = golden.Array<int32_t>(run["outputs"], "sequences");
  ASSERT_TRUE(expected.ok()) << expected.status();
  const int32_t pad = golden.json().value("pad_token_id", -1);
  size_t row = 0;
  std::vector<double> scores;
  for (const Translation& translation : found->translations) {
    std::vector<Ids> all = {translation.ids};
    if (!translation.hypotheses.empty()) all.clear();
    for (const Hypothesis& hypothesis : translation.hypotheses) {
      all.push_back(hypothesis.ids);
      scores.push_back(hypothesis.score);
    }
    for (const Ids& ids : all) {
      ASSERT_LT(row, expected->shape[0]);
      EXPECT_EQ(WithoutPadding(expected->Row(row), pad),
                WithoutPadding(
                    [&] {
                      Ids with_start = {0};
                      with_start.insert(with_start.end(), ids.begin(),
                                        ids.end());
                      return with_start;
                    }(),
                    pad))
          << "sequence " << row;
      ++row;
    }
  }
  EXPECT_EQ(row, expected->shape[0]);
  if (!run["outputs"].contains("sequences_scores")) return;
  const auto reference =
      golden.Array<float>(run["outputs"], "sequences_scores");
  ASSERT_TRUE(reference.ok()) << reference.status();
  ASSERT_EQ(scores.size(), reference->values.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i], reference->values[i], kScoreTolerance) << i;
  }
}

// A text, and its translation without end tokens.
void ExpectText(Engine& engine, const TextRun& run) {
  TranslateRequest request;
  request.texts = {run.text};
  request.parse_special = true;
  request.options.emplace();
  request.options->max_tokens = run.new_ids.size();
  request.options->end_ids = Ids();
  const auto found = engine.Translate(request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const Translation& translation = found->translations.at(0);
  EXPECT_EQ(translation.source_tokens, run.input_ids.size());
  EXPECT_EQ(translation.ids, run.new_ids);
  EXPECT_EQ(translation.text, run.new_text);
}

TEST(TranslateGolden, EqualsTheReference) {
  const std::vector<std::string> cases = Cases();
  ASSERT_GE(cases.size(), 1u);
  size_t runs = 0, defaults = 0, texts = 0;
  for (const std::string& path : cases) {
    SCOPED_TRACE(path);
    const auto opened = CaseFolder::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const CaseFolder& golden = *opened;
    const std::string folder = WithTokenizer(path);
    EngineOptions options;
    options.activations = ActivationPrecision::kF32;
    options.cache = CachePrecision::kF32;
    const auto engine = Engine::Load(folder, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    for (const nlohmann::json& run : golden.runs()) {
      if (run["kind"] != "generate" || !run.value("robust", true)) continue;
      SCOPED_TRACE(run["name"].get<std::string>());
      ExpectRun(**engine, golden, run);
      ++runs;
      defaults += run["params"].is_string();
    }
    if (!golden.json().contains("text_runs")) continue;
    for (const nlohmann::json& json : golden.json()["text_runs"]) {
      const auto run = ReadTextRun(json, golden.path());
      ASSERT_TRUE(run.ok()) << run.status();
      ExpectText(**engine, *run);
      ++texts;
    }
  }
  std::printf("%zu models, %zu runs, %zu texts\n", cases.size(), runs, texts);
  EXPECT_GE(runs, 10 * cases.size());
  EXPECT_GE(defaults, 1u);
  EXPECT_GE(texts, 2u);
}

}  // namespace
}  // namespace lanewise
