// Encoder-only models against the reference's outputs, with f32 activations,
// on every target.
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/encoder_runner.h"
#include "tests/conformance/model_cases.h"

namespace lanewise {
namespace {

class EncoderTest : public testing::TestWithParam<std::string> {};

TEST_P(EncoderTest, EqualsReference) {
  ExpectReferenceOnEveryTarget([](const Context& context) {
    return RunEncoderCase(GetParam(), context);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderTest,
                         testing::ValuesIn(ModelCases("encoder")),
                         CaseTestName);

// A suite without cases tests nothing.
TEST(EncoderCases, ThereAreSome) {
  EXPECT_GE(ModelCases("encoder").size(), 1u);
}

}  // namespace
}  // namespace lanewise
