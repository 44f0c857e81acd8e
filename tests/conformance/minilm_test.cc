// The default embedding model against the reference's outputs for the same
// file: ids, pooled rows, sentence embeddings and their cosines.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_folder.h"

namespace lanewise {
namespace {

constexpr char kFolder[] = "tests/data/real/all_minilm_l6_v2";
constexpr double kTolerance = 1e-5;  // of vectors whose length is 1

class MiniLmTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* config = std::getenv("LANEWISE_MODEL");
    ASSERT_NE(config, nullptr);
    const std::string path = config;
    auto engine = Engine::Load(path.substr(0, path.rfind('/')), {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    auto folder = CaseFolder::Open(kFolder);
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = std::make_unique<CaseFolder>(*std::move(folder));
    for (const auto& text : folder_->json()["sentences"]) {
      request_.texts.push_back(text);
    }
    ASSERT_EQ(request_.texts.size(), 8u);
  }

  CaseArray<float> Golden(const char* field) {
    auto array = folder_->Array<float>(folder_->runs()[0]["outputs"], field);
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? *std::move(array) : CaseArray<float>();
  }

  std::vector<float> Embed(const EmbedRequest& request) {
    const auto result = engine_->Embed(request, {});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    EXPECT_EQ(result->width, 384u);
    EXPECT_EQ(result->max_tokens, 256u);  // of sentence_bert_config.json
    EXPECT_TRUE(result->notices.empty());
    return result->vectors;
  }

  static void ExpectNear(const std::vector<float>& found,
                         const std::vector<float>& expected, const char* what) {
    ASSERT_EQ(found.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      worst = std::max(worst, std::fabs(double{found[i]} - expected[i]));
    }
    std::printf("%s: largest error %.2e\n", what, worst);
    EXPECT_LE(worst, kTolerance) << what;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CaseFolder> folder_;
  EmbedRequest request_;
};

TEST_F(MiniLmTest, T14IdsAreEqual) {
  for (size_t i = 0; i < request_.texts.size(); ++i) {
    if (request_.texts[i].empty()) continue;  // no prompt
    GenerateRequest prompt;
    prompt.prompt = request_.texts[i];
    const auto ids = engine_->PromptIds(prompt);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, folder_->json()["ids"][i].get<std::vector<int32_t>>());
  }
}

TEST_F(MiniLmTest, T14VectorsAndCosinesAreEqual) {
  const std::vector<float> found = Embed(request_);
  ExpectNear(found, Golden("embeddings").values, "embeddings");
  std::vector<float> cosines;
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      double dot = 0;
      for (size_t c = 0; c < 384; ++c) {
        dot += double{found[i * 384 + c]} * found[j * 384 + c];
      }
      cosines.push_back(static_cast<float>(dot));
    }
  }
  ExpectNear(cosines, Golden("cosine").values, "cosines");
}

TEST_F(MiniLmTest, M17MeansAreOfRealTokens) {
  request_.normalize = false;
  ExpectNear(Embed(request_), Golden("mean_pooled").values, "means");
  request_.texts.resize(1);
  const CaseArray<float> rows = Golden("last_hidden_state_row0");
  request_.pooling = EmbedPooling::kFirst;
  const std::vector<float> first = Embed(request_);
  ExpectNear(first, {rows.values.begin(), rows.values.begin() + 384}, "[CLS]");
}

}  // namespace
}  // namespace lanewise
