// Perplexities of the reference through the public API, with f32 activations
// and cache, on every target.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "golden_root.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

// Where a model has no tokenizer of its own: the ids are given.
constexpr char kTokenizer[] =
    R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})";

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& name) {
  const Tensor* tensor = file.Find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<T> values(tensor->elements());
  EXPECT_EQ(tensor->data.size(), values.size() * sizeof(T));
  std::memcpy(values.data(), tensor->data.data(), values.size() * sizeof(T));
  return values;
}

// A folder that shows the files of `source`, with a tokenizer.
std::string WithTokenizer(const fs::path& source) {
  const fs::path folder =
      fs::path(testing::TempDir()) / "score" / source.filename();
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

struct Case {
  fs::path folder;
  nlohmann::json run;
};

std::vector<Case> Cases() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  std::vector<Case> cases;
  for (const auto& entry : fs::directory_iterator(
           golden.empty() ? "tests/data/models" : golden + "/models/decoder")) {
    std::ifstream stream(entry.path() / "case.json");
    const auto json = nlohmann::json::parse(stream, nullptr, false);
    if (!json.is_object()) continue;
    for (const auto& run : json["runs"]) {
      if (run["kind"] == "perplexity") cases.push_back({entry.path(), run});
    }
  }
  return cases;
}

TEST(ScoreGolden, EqualsTheReference) {
  const std::vector<Case> cases = Cases();
  EXPECT_GE(cases.size(), 10u);
  for (const Case& golden : cases) {
    SCOPED_TRACE(golden.folder.filename());
    const auto file =
        SafetensorsFile::Open((golden.folder / "golden.safetensors").string());
    ASSERT_TRUE(file.ok()) << file.status();
    const nlohmann::json& outputs = golden.run["outputs"];
    ScoreRequest request;
    request.ids =
        Values<int32_t>(*file, golden.run["inputs"].value("input_ids", ""));
    const auto nll = Values<float>(*file, outputs.value("token_nll", ""));
    const auto mean = Values<float>(*file, outputs.value("mean_nll", ""));
    ASSERT_EQ(mean.size(), 1u);
    const std::string folder = WithTokenizer(golden.folder);
    for (const std::string& target : AvailableTargets()) {
      SCOPED_TRACE(target);
      EngineOptions options;
      options.activations = ActivationPrecision::kF32;
      options.cache = CachePrecision::kF32;
      options.target = target;
      const auto engine = Engine::Load(folder, options);
      ASSERT_TRUE(engine.ok()) << engine.status();
      const auto result = (*engine)->Score(request, {});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->ids, std::vector<int32_t>(request.ids.begin() + 1,
                                                  request.ids.end()));
      ASSERT_EQ(result->log_probabilities.size(), nll.size());
      for (size_t i = 0; i < nll.size(); ++i) {
        EXPECT_NEAR(-result->log_probabilities[i], nll[i], 1e-4) << i;
      }
      EXPECT_NEAR(result->mean_nll, mean[0], 1e-5);
      EXPECT_NEAR(result->perplexity / golden.run.value("perplexity", 0.0), 1,
                  1e-5);
    }
  }
}

}  // namespace
}  // namespace lanewise
