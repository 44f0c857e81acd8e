// The default embedding model against the reference's outputs for the same
// file: ids, hidden rows, means, sentence embeddings and their cosines.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "simd/context.h"
#include "tests/conformance/real_runner.h"

namespace lanewise {
namespace {

constexpr char kFolder[] = "tests/data/real/all_minilm_l6_v2";

class MiniLmTest : public testing::Test {
 protected:
  static std::string Weights() {
    const char* config = std::getenv("LANEWISE_MODEL");
    EXPECT_NE(config, nullptr);
    const std::string path = config == nullptr ? "" : config;
    return path.substr(0, path.rfind('/'));
  }

  static void SetUpTestSuite() {
    const auto context = Context::Create({});
    ASSERT_TRUE(context.ok()) << context.status();
    auto report = RunRealCase(kFolder, Weights(), **context);
    ASSERT_TRUE(report.ok()) << report.status();
    report_ = new CaseReport(*std::move(report));
  }
  static void TearDownTestSuite() { delete report_; }

  // That many comparisons have this name, and all pass.
  static void ExpectPassed(const std::string& output, size_t count) {
    ASSERT_NE(report_, nullptr);
    size_t found = 0;
    for (const Comparison& c : report_->comparisons) {
      if (c.output != output) continue;
      EXPECT_EQ(c.failure, "") << c.run << " " << c.output;
      std::printf("%s: %s: largest error %.2e\n", c.run.c_str(),
                  c.output.c_str(), c.error);
      ++found;
    }
    EXPECT_EQ(found, count) << output;
  }

  static CaseReport* report_;
};

CaseReport* MiniLmTest::report_ = nullptr;

TEST_F(MiniLmTest, T14IdsAreEqual) { ExpectPassed("input_ids", 8); }

TEST_F(MiniLmTest, T14VectorsAndCosinesAreEqual) {
  ExpectPassed("last_hidden_state_row0", 1);
  ExpectPassed("embeddings", 1);
  ExpectPassed("cosine", 1);
}

TEST_F(MiniLmTest, M17MeansAreOfRealTokens) { ExpectPassed("mean_pooled", 1); }

TEST_F(MiniLmTest, LengthIsThatOfItsFiles) {
  const auto engine = Engine::Load(Weights(), {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EmbedRequest request;
  request.texts = {"one"};
  const auto result = (*engine)->Embed(request, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->width, 384u);
  EXPECT_EQ(result->max_tokens, 256u);  // of sentence_bert_config.json
  EXPECT_TRUE(result->notices.empty());
}

}  // namespace
}  // namespace lanewise
