// Decoder-only models against the reference's outputs, with f32 activations
// and cache, on the best target here and on AVX2 or its like.
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "simd/context.h"
#include "tests/conformance/case_runner.h"

namespace lanewise {
namespace {

class DecoderTest : public testing::TestWithParam<const char*> {};

TEST_P(DecoderTest, EqualsReference) {
  for (const Target& target : Target::Available()) {
    SCOPED_TRACE(std::string(target.name()));
    Context::Options options;
    options.target = target;
    auto context = Context::Create(options);
    ASSERT_TRUE(context.ok());
    const auto report =
        RunDecoderCase(std::string("tests/data/") + GetParam(), **context,
                       {"forward", "perplexity", "generate"});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->comparisons.empty());
    EXPECT_TRUE(report->passed()) << report->Failures();
    std::printf("%s on %s: %zu comparisons\n", GetParam(),
                std::string(target.name()).c_str(), report->comparisons.size());
  }
}

std::string TestName(const testing::TestParamInfo<const char*>& param) {
  std::string name = param.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, DecoderTest,
    testing::Values("models/llama", "models/llama_bias_tied",
                    "models/llama_f16", "models/llama_sharded_bf16",
                    "models/gpt2", "models/gpt2_hubstyle", "models/gpt2_scaled",
                    "gguf/llama_f32", "gguf/llama_f16", "gguf/llama_bf16",
                    "gguf/llama_q8_0", "gguf/llama_q4_0", "gguf/llama_q4_1",
                    "gguf/llama_q5_0", "gguf/llama_q5_1", "gguf/llama_q2_k",
                    "gguf/llama_q3_k_m", "gguf/llama_q4_k_m",
                    "gguf/llama_q5_k_m", "gguf/llama_q6_k", "gguf/llama_iq4_nl",
                    "gguf/arch_llama", "gguf/arch_gpt2"),
    TestName);

}  // namespace
}  // namespace lanewise
