// Good files, compared with what their makers recorded in case.json.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/format/safetensors.h"
#include "model/format/text_file.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/gguf_runner.h"

namespace lanewise {
namespace {

using nlohmann::json;

constexpr char kTypes[] = "tests/data/gguf/types";
constexpr char kTypesFile[] = "tests/data/gguf/types/types.gguf";
constexpr char kLlama[] = "tests/data/models/llama";
constexpr char kSharded[] = "tests/data/models/llama_sharded_bf16";
constexpr char kQ4[] = "tests/data/gguf/llama_q4_k_m";
constexpr char kQ4File[] = "tests/data/gguf/llama_q4_k_m/model.gguf";

json LoadJson(const std::string& path) {
  auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  auto parsed = ParseJson(*text, path);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *std::move(parsed);
}

std::unique_ptr<Checkpoint> MustOpen(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

TEST(Golden, TypesMetadata) {
  const auto checkpoint = MustOpen(kTypesFile);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->kind(), CheckpointKind::kGguf);
  const auto golden = CaseFolder::Open(kTypes);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const LineCount count = CompareMetadata(*golden, *checkpoint);
  EXPECT_EQ(count.equal, count.cases) << count.differences;
  EXPECT_EQ(count.cases, 19u);
  const Metadata& metadata = checkpoint->metadata();
  EXPECT_TRUE(std::holds_alternative<uint64_t>(*metadata.Find("test.u64")));
  EXPECT_TRUE(std::holds_alternative<int64_t>(*metadata.Find("test.u32")));
  EXPECT_EQ(metadata.keys().front(), "general.architecture");
}

TEST(Golden, TypesTensors) {
  const auto checkpoint = MustOpen(kTypesFile);
  ASSERT_NE(checkpoint, nullptr);
  const auto golden = CaseFolder::Open(kTypes);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const LineCount count = CompareTensors(*golden, *checkpoint);
  EXPECT_EQ(count.equal, count.cases) << count.differences;
  EXPECT_EQ(count.cases, 78u);
  EXPECT_EQ(checkpoint->unsupported().size(), 30u);
  for (const UnsupportedTensor& tensor : checkpoint->unsupported()) {
    const auto status = checkpoint->RequireTensor(tensor.name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(), std::string(kTypesFile) + ": tensor " +
                                    tensor.name + ": type " + tensor.type +
                                    " is not supported");
  }
}

TEST(Golden, GgufModel) {
  const auto checkpoint = MustOpen(kQ4File);
  ASSERT_NE(checkpoint, nullptr);
  const auto golden = CaseFolder::Open(kQ4);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const LineCount count = CompareTensors(*golden, *checkpoint);
  EXPECT_EQ(count.equal, count.cases) << count.differences;
  EXPECT_EQ(count.cases, checkpoint->tensors().size());
  // As a folder that holds one GGUF file (its config-like JSON is no config).
  const auto folder = MustOpen(kQ4);
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(folder->kind(), CheckpointKind::kGguf);
  EXPECT_EQ(folder->path(), kQ4);
  EXPECT_EQ(folder->ReadText("case.json").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Golden, Folder) {
  const auto checkpoint = MustOpen(kLlama);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->kind(), CheckpointKind::kHuggingFace);
  EXPECT_TRUE(checkpoint->metadata().keys().empty());
  const auto config = checkpoint->ReadJson("config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto width = GetUint(*config, "config.json", "hidden_size", 1 << 20);
  ASSERT_TRUE(width.ok()) << width.status();
  const auto vocab = GetUint(*config, "config.json", "vocab_size", 1 << 20);
  ASSERT_TRUE(vocab.ok()) << vocab.status();
  const Tensor* embedding = checkpoint->FindTensor("model.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (std::vector<uint64_t>{*vocab, *width}));
  EXPECT_EQ(embedding->type, DType::kF32);
  EXPECT_EQ(checkpoint->ReadText("no such file").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Golden, ShardedFolderEqualsItsShards) {
  const auto checkpoint = MustOpen(kSharded);
  ASSERT_NE(checkpoint, nullptr);
  const json map = LoadJson(std::string(kSharded) +
                            "/model.safetensors.index.json")["weight_map"];
  EXPECT_EQ(checkpoint->tensors().size(), map.size());
  for (const auto& [name, shard] : map.items()) {
    const Tensor* tensor = checkpoint->FindTensor(name);
    ASSERT_NE(tensor, nullptr) << name;
    auto file = SafetensorsFile::Open(std::string(kSharded) + "/" +
                                      shard.get<std::string>());
    ASSERT_TRUE(file.ok()) << file.status();
    const Tensor* same = file->Find(name);
    ASSERT_NE(same, nullptr) << name;
    EXPECT_EQ(tensor->file, same->file);
    EXPECT_EQ(tensor->type, DType::kBF16);
    EXPECT_EQ(tensor->data, same->data);
  }
}

TEST(Golden, ExpectedValuesAreReadable) {
  auto file =
      SafetensorsFile::Open(std::string(kLlama) + "/golden.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const json runs = LoadJson(std::string(kLlama) + "/case.json")["runs"];
  ASSERT_FALSE(runs.empty());
  for (const json& run : runs) {
    for (const auto& [field, name] : run["outputs"].items()) {
      EXPECT_NE(file->Find(name.get<std::string>()), nullptr) << name;
    }
  }
}

TEST(Golden, ReleasedTensorsCanStillBeRead) {
  const auto checkpoint = MustOpen(kLlama);
  ASSERT_NE(checkpoint, nullptr);
  for (const Tensor& tensor : checkpoint->tensors()) {
    std::vector<uint8_t> before(tensor.data.size()), after(tensor.data.size());
    ASSERT_TRUE(checkpoint->Read(tensor, 0, absl::MakeSpan(before)).ok());
    EXPECT_EQ(absl::MakeConstSpan(before), tensor.data);
    checkpoint->Release(tensor);
    ASSERT_TRUE(checkpoint->Read(tensor, 0, absl::MakeSpan(after)).ok());
    EXPECT_EQ(before, after);
  }
}

}  // namespace
}  // namespace lanewise
