// What GGUF metadata says about embedding. (Folders: embed_test.cc.)
#include "runtime/embed_config.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/format/gguf_writer.h"
#include "model/tokenizer/tokenizer.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A file that holds one small tensor and this metadata.
absl::StatusOr<EmbedConfig> Read(std::optional<int64_t> pooling_type,
                                 bool causal) {
  const std::string path = testing::TempDir() + "/embed_config.gguf";
  Metadata metadata;
  metadata.Insert("general.architecture", std::string("bert"));
  if (pooling_type.has_value()) {
    metadata.Insert("bert.pooling_type", *pooling_type, MetadataType::kUint32);
  }
  auto writer = GgufWriter::Create(path, metadata, {{"w", DType::kF32, {1}}});
  EXPECT_TRUE(writer.ok()) << writer.status();
  const std::vector<uint8_t> bytes(4);
  EXPECT_TRUE((*writer)->Append(bytes).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  const auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  ModelSpec spec;
  spec.max_positions = 77;
  spec.layers.resize(1);
  spec.layers[0].attention.causal = causal;
  const auto tokenizer = Tokenizer::FromJson(
      R"({"model": {"type": "WordLevel", "vocab": {"<unk>": 0}}})",
      "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return ReadEmbedConfig(**checkpoint, spec, **tokenizer);
}

TEST(EmbedConfig, PoolingTypesOfGguf) {
  const EmbedPooling expected[] = {EmbedPooling::kMean, EmbedPooling::kMean,
                                   EmbedPooling::kFirst, EmbedPooling::kLast};
  for (int64_t type = 0; type < 4; ++type) {
    const auto config = Read(type, /*causal=*/false);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->pooling, ElementsAre(expected[type]));
    EXPECT_EQ(config->pooling_stated, type > 0);
    EXPECT_TRUE(config->normalize);
    EXPECT_EQ(config->limit.max_tokens, 77u);
  }
  const auto rank = Read(4, false);
  EXPECT_EQ(rank.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(rank.status().message()),
              AllOf(HasSubstr("bert.pooling_type"), HasSubstr("found 4")));
}

TEST(EmbedConfig, WithoutAWordTheLastRowOfADecoder) {
  EXPECT_THAT(Read(std::nullopt, /*causal=*/true)->pooling,
              ElementsAre(EmbedPooling::kLast));
  EXPECT_THAT(Read(std::nullopt, /*causal=*/false)->pooling,
              ElementsAre(EmbedPooling::kMean));
  EXPECT_FALSE(Read(std::nullopt, true)->pooling_stated);
}

}  // namespace
}  // namespace lanewise
