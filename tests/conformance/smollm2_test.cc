// The default model against the reference's outputs for the same file:
// rendered prompts, ids, logits with f32 activations and cache, and greedy
// continuations.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "simd/context.h"
#include "tests/conformance/real_runner.h"

namespace lanewise {
namespace {

constexpr char kFolder[] = "tests/data/real/smollm2_135m_q4_1";

TEST(SmolLm2Test, EqualsReference) {
  const char* path = std::getenv("LANEWISE_MODEL");
  ASSERT_NE(path, nullptr);
  const auto context = Context::Create({});
  ASSERT_TRUE(context.ok()) << context.status();
  const auto report = RunRealCase(kFolder, path, **context);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed()) << report->Failures();
  // 6 texts, of which 3 are chats, and what is compared of each.
  const auto count = [&](const std::string& output) {
    return std::count_if(
        report->comparisons.begin(), report->comparisons.end(),
        [&](const Comparison& c) { return c.output == output; });
  };
  EXPECT_EQ(count("rendered"), 3);
  for (const char* output :
       {"input_ids", "new_ids", "new_text", "last_logits", "logits_every_64th",
        "top20_values", "token_nll"}) {
    EXPECT_EQ(count(output), 6) << output;
  }
  for (const char* file : {"encode", "pairs", "decode", "bytes"}) {
    EXPECT_EQ(count(file), 1) << file;
  }
  std::printf("%zu outputs, largest error %.2e of the standard deviation\n",
              report->Outputs(), report->LargestError());
}

TEST(SmolLm2Test, SessionsWithAWarmCacheGiveTheSameBits) {
  const char* path = std::getenv("LANEWISE_MODEL");
  ASSERT_NE(path, nullptr);
  EngineOptions options;
  options.activations = ActivationPrecision::kF32;
  options.cache = CachePrecision::kF32;
  auto engine = Engine::Load(path, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  GenerateRequest request;
  request.messages = {{"user", "What is the capital of France?"}};
  request.max_tokens = 16;
  request.hash_logits = true;
  auto session = (*engine)->NewSession();
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
