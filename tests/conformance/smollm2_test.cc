// The default model against the reference's outputs for the same file:
// rendered prompts, ids, logits with f32 activations and cache, and greedy
// continuations.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"
#include "simd/target.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

constexpr char kFolder[] = "tests/data/real/smollm2_135m_q4_1";
constexpr double kLogitTolerance = 1e-3;  // of their standard deviation
constexpr double kNllTolerance = 1e-4;

class SmolLm2Test : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("LANEWISE_MODEL");
    ASSERT_NE(path, nullptr);
    EngineOptions options;
    options.activations = ActivationPrecision::kF32;
    options.cache = CachePrecision::kF32;
    auto engine = Engine::Load(path, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    std::ifstream stream(std::string(kFolder) + "/case.json");
    std::stringstream text;
    text << stream.rdbuf();
    case_ = nlohmann::json::parse(text.str(), nullptr, false);
    ASSERT_TRUE(case_.is_object());
    auto golden =
        SafetensorsFile::Open(std::string(kFolder) + "/golden.safetensors");
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = std::make_unique<SafetensorsFile>(*std::move(golden));
  }

  template <class T>
  std::vector<T> Values(const std::string& name) {
    const Tensor* tensor = golden_->Find(name);
    if (tensor == nullptr) {
      ADD_FAILURE() << "no golden tensor " << name;
      return {};
    }
    std::vector<T> values(tensor->elements());
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }

  static GenerateRequest RequestOf(const nlohmann::json& run) {
    GenerateRequest request;
    if (run.contains("messages")) {
      for (const auto& message : run["messages"]) {
        request.messages.push_back({message["role"], message["content"]});
      }
    } else {
      request.prompt = run["text"];
    }
    request.max_tokens = 32;
    return request;
  }

  std::unique_ptr<Engine> engine_;
  nlohmann::json case_;
  std::unique_ptr<SafetensorsFile> golden_;
};

TEST_F(SmolLm2Test, RendersAndTokenizesPrompts) {
  size_t rendered = 0;
  for (const auto& run : case_["text_runs"]) {
    const GenerateRequest request = RequestOf(run);
    if (!request.messages.empty()) {
      const auto text = engine_->RenderChat(request.messages);
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, run["text"].get<std::string>());
      ++rendered;
    }
    const auto ids = engine_->PromptIds(request);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, run["input_ids"].get<std::vector<int32_t>>());
  }
  EXPECT_EQ(rendered, 3u);
}

TEST_F(SmolLm2Test, GreedyContinuationsAreEqual) {
  for (const auto& run : case_["text_runs"]) {
    const auto result = engine_->Generate(RequestOf(run), {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->ids, run["new_ids"].get<std::vector<int32_t>>())
        << run["run"];
    EXPECT_EQ(result->text, run["new_text_skip"].get<std::string>());
  }
}

TEST_F(SmolLm2Test, LogitsAreWithinTolerance) {
  const size_t vocab = engine_->vocab_size();
  for (const auto& run : case_["runs"]) {
    const std::string name = run["name"];
    SCOPED_TRACE(name);
    const auto ids = Values<int32_t>(name + ".input_ids");
    const auto logits = engine_->Logits(ids);
    ASSERT_TRUE(logits.ok()) << logits.status();
    const double limit =
        kLogitTolerance * run["logits_std"].template get<double>();

    const auto last = Values<float>(name + ".last_logits");
    const auto sparse = Values<float>(name + ".logits_every_64th");
    const auto top_values = Values<float>(name + ".top20_values");
    const auto top_ids = Values<int32_t>(name + ".top20_ids");
    const auto nll = Values<float>(name + ".token_nll");
    double worst = 0, worst_nll = 0;
    const auto compare = [&](size_t position, size_t id, float expected) {
      const double error =
          std::fabs(double{(*logits)[position * vocab + id]} - expected);
      worst = std::max(worst, error);
      EXPECT_LE(error, limit) << "position " << position << ", id " << id;
    };
    for (size_t id = 0; id < vocab; ++id) compare(ids.size() - 1, id, last[id]);
    for (size_t p = 0; p < ids.size(); ++p) {
      for (size_t i = 0; i < vocab / 64; ++i) {
        compare(p, i * 64, sparse[p * (vocab / 64) + i]);
      }
      for (size_t i = 0; i < 20; ++i) {
        compare(p, static_cast<size_t>(top_ids[p * 20 + i]),
                top_values[p * 20 + i]);
      }
      if (p + 1 == ids.size()) continue;
      const float* row = logits->data() + p * vocab;
      const double found =
          LogSumExp(Target::Best(), row, vocab) - double{row[ids[p + 1]]};
      worst_nll = std::max(worst_nll, std::fabs(found - double{nll[p]}));
    }
    EXPECT_LE(worst_nll, kNllTolerance);
    std::printf("%s: largest error %.2e of the standard deviation, nll %.1e\n",
                name.c_str(), worst / limit * kLogitTolerance, worst_nll);
  }
}

TEST_F(SmolLm2Test, SessionsWithAWarmCacheGiveTheSameBits) {
  GenerateRequest request;
  request.messages = {{"user", "What is the capital of France?"}};
  request.max_tokens = 16;
  request.hash_logits = true;
  auto session = engine_->NewSession();
  ASSERT_TRUE(session.ok());
  const auto cold = (*session)->Generate(request, {});
  ASSERT_TRUE(cold.ok()) << cold.status();
  EXPECT_EQ(cold->cached_tokens, 0u);
  const auto warm = (*session)->Generate(request, {});
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->cached_tokens, warm->prompt_tokens - 1);
  EXPECT_EQ(warm->logits_hash, cold->logits_hash);
  EXPECT_EQ(warm->text, cold->text);
}

}  // namespace
}  // namespace lanewise
