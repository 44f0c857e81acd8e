// Vocabularies in GGUF metadata: what they build, and malformed ones.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/format/metadata.h"
#include "model/tokenizer/byte_level.h"
#include "model/tokenizer/tokenizer.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;
using Values = std::vector<std::pair<std::string, MetadataValue>>;

constexpr char kSpace[] = "\xE2\x96\x81";

// `values` under "tokenizer.ggml.", of equal keys the last one.
Metadata Make(const Values& values) {
  Metadata metadata("dir/m.gguf");
  for (auto it = values.rbegin(); it != values.rend(); ++it) {
    metadata.Insert("tokenizer.ggml." + it->first, it->second);
  }
  return metadata;
}

Values With(Values base, const std::string& key, MetadataValue value) {
  base.emplace_back(key, std::move(value));
  return base;
}

// Byte-level: 256 bytes, "ab", <|bos|> (control), <|tool|> (user-defined).
Values BytePairs() {
  Strings tokens;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    const char c = static_cast<char>(byte);
    AppendByteLevel(absl::string_view(&c, 1), &token);
    tokens.push_back(token);
  }
  tokens.insert(tokens.end(), {"ab", "<|bos|>", "<|tool|>"});
  std::vector<int64_t> types(tokens.size(), 1);
  types[257] = 3;
  types[258] = 4;
  return {{"model", std::string("gpt2")},
          {"pre", std::string("gpt-2")},
          {"tokens", tokens},
          {"token_type", types},
          {"merges", Strings{"a b"}},
          {"bos_token_id", int64_t{257}},
          {"eos_token_id", int64_t{257}}};
}

// SentencePiece: <unk>, <s>, </s>, the bytes, then pieces.
Values SentencePiece() {
  Strings tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int64_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    tokens.push_back(absl::StrCat("<0x", std::string(1, digits[byte / 16]),
                                  std::string(1, digits[byte % 16]), ">"));
    types.push_back(6);
  }
  std::vector<double> scores(tokens.size(), 0);
  const auto add = [&](const std::string& text, double score) {
    tokens.push_back(text);
    types.push_back(1);
    scores.push_back(score);
  };
  add(kSpace, -10);                     // 259
  add("a", -11);                        // 260
  add("b", -12);                        // 261
  add("ab", -2);                        // 262
  add("bb", -1);                        // 263
  add(std::string(kSpace) + "ab", -3);  // 264
  return {{"model", std::string("llama")}, {"tokens", tokens},
          {"token_type", types},           {"scores", scores},
          {"bos_token_id", int64_t{1}},    {"eos_token_id", int64_t{2}},
          {"unknown_token_id", int64_t{0}}};
}

std::unique_ptr<Tokenizer> Load(const Values& values) {
  auto tokenizer = Tokenizer::FromMetadata(Make(values));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

void ExpectError(const Values& values, absl::string_view message) {
  const auto tokenizer = Tokenizer::FromMetadata(Make(values));
  ASSERT_FALSE(tokenizer.ok()) << message;
  EXPECT_TRUE(absl::StrContains(tokenizer.status().message(), "dir/m.gguf"))
      << tokenizer.status();
  EXPECT_TRUE(absl::StrContains(tokenizer.status().message(), message))
      << tokenizer.status();
}

TEST(GgufVocabulary, BytePairs) {
  const auto tokenizer = Load(BytePairs());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->Encode("abba", {}), Ids({256, 'b', 'a'}));
  EXPECT_EQ(tokenizer->Decode(Ids{256, 'b', 257}, {}), "abb<|bos|>");
  DecodeOptions skip;
  skip.skip_special_tokens = true;
  EXPECT_EQ(tokenizer->Decode(Ids{256, 'b', 257}, skip), "abb");
  EXPECT_EQ(tokenizer->vocab_size(), 259u);
  EXPECT_EQ(tokenizer->bos_id(), 257);
  EXPECT_EQ(tokenizer->eos_id(), 257);
}

TEST(GgufVocabulary, T28ControlTokensOnlyWhereAsked) {
  const auto tokenizer = Load(BytePairs());
  ASSERT_NE(tokenizer, nullptr);
  EncodeOptions parse;
  parse.parse_special_tokens = true;
  EXPECT_EQ(*tokenizer->Encode("<|bos|>", parse), Ids({257}));
  EXPECT_EQ(tokenizer->Encode("<|bos|>", {})->size(), 7u);
  // User-defined tokens are matched either way.
  EXPECT_EQ(*tokenizer->Encode("a<|tool|>", {}), Ids({'a', 258}));
  EXPECT_FALSE(tokenizer->IsSpecial(258));
}

TEST(GgufVocabulary, AddBosAndEos) {
  EXPECT_EQ(*Load(With(BytePairs(), "add_bos_token", true))->Encode("b", {}),
            Ids({257, 'b'}));
  EXPECT_EQ(*Load(With(BytePairs(), "add_eos_token", true))->Encode("b", {}),
            Ids({'b', 257}));
  // Llama 3's pre-tokenizer adds it unless the file says no.
  const Values llama3 = With(BytePairs(), "pre", std::string("llama-bpe"));
  EXPECT_EQ(*Load(llama3)->Encode("b", {}), Ids({257, 'b'}));
  EXPECT_EQ(*Load(With(llama3, "add_bos_token", false))->Encode("b", {}),
            Ids({'b'}));
}

TEST(GgufVocabulary, EveryNamedPreTokenizerLoads) {
  for (const char* name : {"default",
                           "gpt-2",
                           "mpt",
                           "falcon",
                           "starcoder",
                           "smollm",
                           "refact",
                           "command-r",
                           "llama-bpe",
                           "llama3",
                           "dbrx",
                           "smaug-bpe",
                           "qwen2",
                           "deepseek-r1-qwen",
                           "stablelm2",
                           "qwen35",
                           "gpt-4o",
                           "llama4",
                           "tekken",
                           "deepseek-llm",
                           "deepseek-coder",
                           "deepseek-v3",
                           "bloom",
                           "viking",
                           "seed-coder",
                           "bailingmoe",
                           "chatglm-bpe",
                           "olmo",
                           "jais",
                           "exaone",
                           "jina-v2-code",
                           "roberta-bpe",
                           "codeshell",
                           "poro-chat"}) {
    const auto tokenizer = Load(With(BytePairs(), "pre", std::string(name)));
    ASSERT_NE(tokenizer, nullptr) << name;
    EncodeOptions options;
    options.add_special_tokens = false;
    const std::string text =
        "Hello, w\xC3\xB6rld's 1234  \n\n\t x\xE4\xB8\xAD\xE6\x96\x87! \r\n";
    const auto ids = tokenizer->Encode(text, options);
    ASSERT_TRUE(ids.ok()) << name << ids.status();
    EXPECT_EQ(tokenizer->Decode(*ids, {}), text) << name;
  }
  ExpectError(With(BytePairs(), "pre", std::string("nonesuch")),
              "tokenizer.ggml.pre: a pre-tokenizer named \"nonesuch\"");
}

TEST(GgufVocabulary, SentencePieceMergesByScore) {
  const auto tokenizer = Load(SentencePiece());
  ASSERT_NE(tokenizer, nullptr);
  // "bb" has the best score, so "ab" cannot form before it.
  EXPECT_EQ(*tokenizer->Encode("abb", {}), Ids({1, 259, 260, 263}));
  EXPECT_EQ(*tokenizer->Encode("ab", {}), Ids({1, 264}));
  EXPECT_EQ(tokenizer->Decode(Ids{264, 264}, {}), "ab ab");
  EXPECT_EQ(*tokenizer->Encode("\n", {}), Ids({1, 259, 3 + 10}));
  EXPECT_EQ(tokenizer->Decode(Ids{259, 3 + 0xC3, 3 + 0xA4}, {}), "\xC3\xA4");
}

TEST(GgufVocabulary, T1SentencePiecePrefixSpace) {
  const auto tokenizer = Load(With(SentencePiece(), "add_space_prefix", false));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->Encode("ab", {}), Ids({1, 262}));
  EXPECT_EQ(*tokenizer->Encode(" ab", {}), Ids({1, 264}));
}

TEST(GgufVocabulary, T28SentencePieceBytesAreNotSpelled) {
  const auto tokenizer = Load(SentencePiece());
  ASSERT_NE(tokenizer, nullptr);
  for (const char* text : {"<0x41>", "<s>", "</s>", "<unk>"}) {
    const auto ids = tokenizer->Encode(text, {});
    ASSERT_TRUE(ids.ok());
    EXPECT_GT(ids->size(), 4u) << text;
    EXPECT_EQ(tokenizer->Decode(absl::MakeConstSpan(*ids).subspan(1), {}),
              text);
  }
}

TEST(GgufVocabulary, WordPiece) {
  const Values values = {
      {"model", std::string("bert")},
      {"tokens",
       Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", std::string(kSpace) + "play",
               "ing", std::string(kSpace) + "!", "[", std::string(kSpace) + "[",
               "[unused1]"}},
      {"token_type", std::vector<int64_t>{3, 3, 3, 3, 1, 1, 1, 1, 1, 1}},
      {"unknown_token_id", int64_t{1}},
      {"cls_token_id", int64_t{2}},
      {"seperator_token_id", int64_t{3}}};
  const auto tokenizer = Load(values);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->Encode("Playing!", {}), Ids({2, 4, 5, 6, 3}));
  EXPECT_EQ(*tokenizer->Encode("ing", {}), Ids({2, 1, 3}));
  // A bracket inside a word and one that starts it.
  EXPECT_EQ(tokenizer->TokenText(7), "##[");
  EXPECT_EQ(*tokenizer->Encode("[", {}), Ids({2, 8, 3}));
  EXPECT_EQ(tokenizer->TokenText(9), "[unused1]");
  EXPECT_EQ(tokenizer->Decode(Ids{4, 5, 6}, {}), "playing!");
  Ids types;
  EXPECT_EQ(*tokenizer->EncodePair("play", "play", {}, &types),
            Ids({2, 4, 3, 4, 3}));
  EXPECT_EQ(types, Ids({0, 0, 0, 1, 1}));
}

TEST(GgufVocabulary, Unigram) {
  const std::string s = kSpace;
  const Values values = {
      {"model", std::string("t5")},
      {"tokens", Strings{"<pad>", "</s>", "<unk>", s, s + "hel", "lo", "l"}},
      {"token_type", std::vector<int64_t>{3, 3, 2, 1, 1, 1, 1}},
      {"scores", std::vector<double>{0, 0, 0, -2, -3, -3, -5}},
      {"eos_token_id", int64_t{1}},
      {"unknown_token_id", int64_t{2}}};
  const auto tokenizer = Load(values);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->Encode("hello", {}), Ids({4, 5, 1}));
  EXPECT_EQ(*tokenizer->Encode("xy", {}), Ids({3, 2, 1}));
  EXPECT_EQ(tokenizer->Decode(Ids{4, 5}, {}), "hello");
}

TEST(GgufVocabulary, Malformed) {
  ExpectError({}, "tokenizer.ggml.model");
  ExpectError(With(BytePairs(), "model", int64_t{3}), "tokenizer.ggml.model");
  ExpectError(With(BytePairs(), "model", std::string("no_vocab")),
              "\"no_vocab\" is not supported");
  ExpectError(With(BytePairs(), "tokens", std::string("x")),
              "tokenizer.ggml.tokens");
  ExpectError(With(BytePairs(), "token_type", std::vector<int64_t>{1}),
              "tokenizer.ggml.token_type");
  ExpectError(With(BytePairs(), "merges", Strings{"ab"}),
              "tokenizer.ggml.merges[0]");
  ExpectError(With(BytePairs(), "merges", Strings{""}),
              "tokenizer.ggml.merges[0]");
  ExpectError(With(BytePairs(), "merges", std::vector<int64_t>{1}),
              "tokenizer.ggml.merges");
  ExpectError(With(BytePairs(), "bos_token_id", int64_t{259}),
              "tokenizer.ggml.bos_token_id");
  ExpectError(With(BytePairs(), "eos_token_id", int64_t{-1}),
              "tokenizer.ggml.eos_token_id");
  ExpectError(With(BytePairs(), "add_bos_token", std::string("yes")),
              "tokenizer.ggml.add_bos_token");
  ExpectError(With(SentencePiece(), "scores", std::vector<double>{1, 2}),
              "tokenizer.ggml.scores");
  ExpectError(With(SentencePiece(), "scores", std::string("x")),
              "tokenizer.ggml.scores");
}

TEST(GgufVocabulary, TokensThatAreNotText) {
  // Bytes in a token that are no UTF-8 cannot cut a character in two.
  Values values = BytePairs();
  Strings tokens = std::get<Strings>(values[2].second);
  tokens[258] = "\xA4";
  const auto tokenizer = Load(With(values, "tokens", tokens));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->Encode("\xC3\xA4", {}), Ids({0xC3, 0xA4}));
  EXPECT_EQ(tokenizer->Decode(Ids{258}, {}), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace lanewise
