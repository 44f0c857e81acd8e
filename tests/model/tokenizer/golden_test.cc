// Recorded ids and texts of tokenizers that between them use every stage.
#include "tests/model/tokenizer/golden.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EqualsReference) {
  const std::string name = GetParam();
  const std::unique_ptr<Tokenizer> tokenizer = LoadTestTokenizer(name);
  ASSERT_NE(tokenizer, nullptr);
  const GoldenCounts counts = CompareGoldens(*tokenizer, TestDataPath(name));
  ExpectEqual(counts);
  EXPECT_GT(counts.encode.cases, 50u);
  EXPECT_GT(counts.pairs.cases, 0u);
  EXPECT_GT(counts.decode.cases, 10u);
  EXPECT_GT(counts.bytes.cases, 5u);
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers, Golden,
    testing::Values("added_bert", "added_bytelevel", "added_llama",
                    "added_unigram", "albert", "bert_cased", "bert_cased_strip",
                    "bert_lower_keepaccents", "bert_truncpad", "bert_uncased",
                    "bpe_suffix", "cl100k", "clip", "deepseek", "gemma", "gpt2",
                    "gpt2_prefix", "llama2", "llama2_metaspace",
                    "llama2_metaspace_split", "llama3", "o200k", "qwen2",
                    "roberta", "roberta_prefix", "starcoder", "t5", "t5_nmt",
                    "unigram_bytefallback", "wordlevel", "xlmr"),
    [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lanewise
