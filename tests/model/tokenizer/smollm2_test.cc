// The default model's vocabulary against the reference.
#include <cstdlib>

#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

TEST(SmolLm2Tokenizer, EqualsReference) {
  const char* path = std::getenv("LANEWISE_MODEL");
  ASSERT_NE(path, nullptr);
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto tokenizer = Tokenizer::Load(**checkpoint);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const GoldenCounts counts = CompareGoldens(
      **tokenizer, "tests/data/real/smollm2_135m_q4_1/tokenizer");
  EXPECT_EQ(counts.encode.cases, 281u);
  ExpectEqual(counts);
  for (const LineCount* count :
       {&counts.encode, &counts.pairs, &counts.decode, &counts.bytes}) {
    EXPECT_GT(count->cases, 0u);
  }
}

}  // namespace
}  // namespace lanewise
