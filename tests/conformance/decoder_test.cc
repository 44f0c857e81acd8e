// Decoder-only models against the reference's outputs, with f32 activations
// and cache, on every target.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/decoder_runner.h"
#include "tests/conformance/model_cases.h"

namespace lanewise {
namespace {

// From folders and from GGUF files.
std::vector<std::string> Cases() {
  std::vector<std::string> cases = ModelCases("decoder");
  const std::vector<std::string> gguf = GgufCases();
  cases.insert(cases.end(), gguf.begin(), gguf.end());
  return cases;
}

class DecoderTest : public testing::TestWithParam<std::string> {};

TEST_P(DecoderTest, EqualsReference) {
  ExpectReferenceOnEveryTarget([](const Context& context) {
    return RunDecoderCase(GetParam(), context,
                          {"forward", "perplexity", "generate", "text"});
  });
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderTest, testing::ValuesIn(Cases()),
                         CaseTestName);

// A suite without cases tests nothing.
TEST(DecoderCases, ThereAreSome) { EXPECT_GE(Cases().size(), 20u); }

}  // namespace
}  // namespace lanewise
