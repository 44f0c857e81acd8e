// Tokenizers of folders as GGUF metadata, against recorded ids.
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/model/model_folder.h"
#include "tools/quantize_export.h"

namespace lanewise {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kFolder[] = "tests/data/tokenizer/";

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

struct Exported {
  absl::Status status;
  Metadata metadata;
  std::vector<std::string> notices;
};

// The tokenizer of this name in a model's folder, `unused` ids more than it
// has tokens.
Exported Export(const std::string& name, size_t unused = 0) {
  ModelFolder folder("llama");
  const std::string text = ReadFile(kFolder + name + "/tokenizer.json");
  EXPECT_FALSE(text.empty()) << name;
  folder.Write("tokenizer.json", text);
  folder.Remove("tokenizer_config.json");
  const auto checkpoint = Checkpoint::Open(folder.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto tokenizer = Tokenizer::FromJson(text, name);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  Exported exported;
  exported.status =
      ExportTokenizer(**checkpoint, (*tokenizer)->vocab_size() + unused,
                      &exported.metadata, &exported.notices);
  return exported;
}

// Compares with the recorded ids of every text; those of texts that begin with
// a space only when `spaces`.
void ExpectRecordedIds(const std::string& name, const Metadata& metadata,
                       bool spaces) {
  const auto tokenizer = Tokenizer::FromMetadata(metadata);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::ifstream lines(kFolder + name + "/encode.jsonl");
  std::string line;
  size_t texts = 0;
  while (std::getline(lines, line)) {
    const json row = json::parse(line);
    const std::string text = row["text"];
    if (!spaces && !text.empty() && text[0] == ' ') continue;
    if (text.size() > 2000) continue;
    EncodeOptions options;
    options.parse_special_tokens = true;
    const auto ids = (*tokenizer)->Encode(text, options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(json(*ids), row["ids"]) << name << ": " << line.substr(0, 300);
    ++texts;
  }
  EXPECT_GT(texts, 50u);
}

TEST(QuantizeTokenizer, KindsThatGgufHas) {
  const struct {
    const char *name, *model, *pre;
  } kCases[] = {
      {"gpt2", "gpt2", "gpt-2"},       {"roberta", "gpt2", "gpt-2"},
      {"llama3", "gpt2", "llama-bpe"}, {"qwen2", "gpt2", "qwen2"},
      {"o200k", "gpt2", "gpt-4o"},     {"starcoder", "gpt2", "smollm"},
  };
  for (const auto& row : kCases) {
    const Exported exported = Export(row.name);
    ASSERT_TRUE(exported.status.ok()) << exported.status;
    EXPECT_EQ(*exported.metadata.GetString("tokenizer.ggml.model"), row.model);
    EXPECT_EQ(*exported.metadata.GetString("tokenizer.ggml.pre"), row.pre);
    EXPECT_THAT(exported.notices, testing::IsEmpty()) << row.name;
    ExpectRecordedIds(row.name, exported.metadata, /*spaces=*/true);
  }
}

TEST(QuantizeTokenizer, SentencePieceScoresFollowTheMerges) {
  const Exported exported = Export("llama2");
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  const Metadata& metadata = exported.metadata;
  EXPECT_EQ(*metadata.GetString("tokenizer.ggml.model"), "llama");
  EXPECT_TRUE(*metadata.GetBool("tokenizer.ggml.add_bos_token"));
  EXPECT_TRUE(*metadata.GetBool("tokenizer.ggml.add_space_prefix"));
  EXPECT_EQ(metadata.TypeOf("tokenizer.ggml.scores"), MetadataType::kFloat32);
  EXPECT_EQ(metadata.TypeOf("tokenizer.ggml.token_type"), MetadataType::kInt32);
  ExpectRecordedIds("llama2", metadata, /*spaces=*/true);
}

TEST(QuantizeTokenizer, UnigramKeepsItsScoresAndCharacterMap) {
  const Exported exported = Export("t5");
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  const Metadata& metadata = exported.metadata;
  EXPECT_EQ(*metadata.GetString("tokenizer.ggml.model"), "t5");
  EXPECT_FALSE(*metadata.GetBool("tokenizer.ggml.add_bos_token"));
  EXPECT_TRUE(*metadata.GetBool("tokenizer.ggml.add_eos_token"));
  EXPECT_EQ(metadata.TypeOf("tokenizer.ggml.precompiled_charsmap"),
            MetadataType::kUint8);
  EXPECT_THAT(exported.notices, testing::IsEmpty());
  ExpectRecordedIds("t5", metadata, /*spaces=*/true);
}

// The text of a report, and others with what it has: accents, a dash, digits,
// an emoji that only bytes can spell.
TEST(QuantizeTokenizer, T5GgufGivesTheIdsOfTheFolder) {
  for (const char* name : {"gemma", "llama2", "gpt2", "qwen2"}) {
    const Exported exported = Export(name);
    ASSERT_TRUE(exported.status.ok()) << exported.status;
    const auto gguf = Tokenizer::FromMetadata(exported.metadata);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    const auto folder = Tokenizer::FromJson(
        ReadFile(std::string(kFolder) + name + "/tokenizer.json"), name);
    ASSERT_TRUE(folder.ok()) << folder.status();
    for (const char* text :
         {"Hello world! Caf\xC3\xA9 d\xC3\xA9j\xC3\xA0 vu \xE2\x80\x94 123 "
          "\xF0\x9F\x98\x8A",
          "\xE2\x80\x94\xC3\xA9 12,345.67", "a  b\n\n c\t",
          "\xE4\xBD\xA0\xEF\xBC\x9F"}) {
      EXPECT_EQ(*(*gguf)->Encode(text, {}), *(*folder)->Encode(text, {}))
          << name << ": " << text;
    }
  }
}

// There a space before a text counts as the prefix; in GGUF it does not.
TEST(QuantizeTokenizer, ADifferenceInLeadingSpacesIsSaid) {
  const Exported exported = Export("llama2_metaspace");
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  ASSERT_EQ(exported.notices.size(), 1u);
  EXPECT_THAT(exported.notices[0], HasSubstr("begin with a space"));
}

TEST(QuantizeTokenizer, IdsWithoutTokensAreUnused) {
  const Exported exported = Export("gpt2", 3);
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  const auto* tokens = *exported.metadata.GetStrings("tokenizer.ggml.tokens");
  const auto types = *exported.metadata.GetInts("tokenizer.ggml.token_type");
  ASSERT_EQ(tokens->size(), types.size());
  EXPECT_EQ(types.back(), 5);
  EXPECT_EQ(tokens->back(), "[PAD" + std::to_string(types.size() - 1) + "]");
}

TEST(QuantizeTokenizer, OtherKindsAreRefusedWithAWayOut) {
  const struct {
    const char *name, *message;
  } kCases[] = {
      {"bert_uncased", "a model of type WordPiece"},
      {"albert", "would get other ids"},
      {"t5_nmt", "would get other ids"},
      {"wordlevel", "a model of type WordLevel"},
      {"cl100k", "the pattern of this pre-tokenizer"},
      {"deepseek", "this pre-tokenizer"},
      {"gpt2_prefix", "would get other ids"},
  };
  for (const auto& row : kCases) {
    const Exported exported = Export(row.name);
    EXPECT_EQ(exported.status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(exported.status.message()), HasSubstr(row.message));
    EXPECT_THAT(std::string(exported.status.message()),
                HasSubstr("--no_tokenizer writes the file"));
  }
}

// Hostile files: ids out of range, merges of a wrong kind.
TEST(QuantizeTokenizer, MalformedFilesAreErrors) {
  const std::string good =
      ReadFile(std::string(kFolder) + "gpt2/tokenizer.json");
  const auto with = [&](const std::function<void(json&)>& edit) {
    json root = json::parse(good);
    edit(root);
    ModelFolder folder("llama");
    folder.Write("tokenizer.json", root.dump());
    const auto checkpoint = Checkpoint::Open(folder.path());
    Metadata metadata;
    std::vector<std::string> notices;
    return ExportTokenizer(**checkpoint, 500000, &metadata, &notices);
  };
  EXPECT_TRUE(with([](json&) {}).ok());
  EXPECT_FALSE(with([](json& root) { root["model"] = 3; }).ok());
  EXPECT_FALSE(with([](json& root) { root["model"].erase("vocab"); }).ok());
  EXPECT_FALSE(with([](json& root) { root["model"]["vocab"]["x"] = -1; }).ok());
  EXPECT_FALSE(
      with([](json& root) { root["model"]["vocab"]["x"] = 500000; }).ok());
  EXPECT_FALSE(with([](json& root) { root["model"]["merges"] = {1, 2}; }).ok());
  EXPECT_FALSE(with([](json& root) { root["pre_tokenizer"] = nullptr; }).ok());
}

}  // namespace
}  // namespace lanewise
