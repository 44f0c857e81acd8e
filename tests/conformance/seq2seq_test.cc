// Encoder-decoders against the reference's outputs, with f32 activations and
// caches, on every target.
#include <string>

#include "gtest/gtest.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/model_cases.h"
#include "tests/conformance/seq2seq_runner.h"

namespace lanewise {
namespace {

class Seq2SeqTest : public testing::TestWithParam<std::string> {};

TEST_P(Seq2SeqTest, EqualsReference) {
  ExpectReferenceOnEveryTarget([](const Context& context) {
    return RunSeq2SeqCase(GetParam(), context);
  });
}

// The other style of config.json gives the same.
TEST_P(Seq2SeqTest, LegacyConfigurationToo) {
  if (!LegacyFolder::Exists(GetParam())) return;
  const auto legacy = LegacyFolder::Create(GetParam());
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  auto context = Context::Create({});
  ASSERT_TRUE(context.ok());
  const auto report = RunSeq2SeqCase(legacy->path(), **context);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->comparisons.empty());
  EXPECT_TRUE(report->passed()) << report->Failures();
}

INSTANTIATE_TEST_SUITE_P(Models, Seq2SeqTest,
                         testing::ValuesIn(ModelCases("encoder-decoder")),
                         CaseTestName);

// A suite without cases tests nothing.
TEST(Seq2SeqCases, ThereAreSome) {
  EXPECT_GE(ModelCases("encoder-decoder").size(), 1u);
}

}  // namespace
}  // namespace lanewise
