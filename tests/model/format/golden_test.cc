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

namespace lanewise {
namespace {

using nlohmann::json;

constexpr char kTypes[] = "tests/data/gguf/types/types.gguf";
constexpr char kTypesCase[] = "tests/data/gguf/types/case.json";
constexpr char kLlama[] = "tests/data/models/llama";
constexpr char kSharded[] = "tests/data/models/llama_sharded_bf16";
constexpr char kQ4[] = "tests/data/gguf/llama_q4_k_m/model.gguf";
constexpr char kQ4Case[] = "tests/data/gguf/llama_q4_k_m/case.json";

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

// What Metadata holds as JSON, for comparison.
struct ToJson {
  template <class T>
  json operator()(const T& value) const {
    return value;
  }
};

TEST(Golden, TypesMetadata) {
  const auto checkpoint = MustOpen(kTypes);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->kind(), CheckpointKind::kGguf);
  const json expected = LoadJson(kTypesCase)["metadata"];
  const Metadata& metadata = checkpoint->metadata();
  for (const auto& [key, value] : expected.items()) {
    const MetadataValue* found = metadata.Find(key);
    if (key == "test.empty") {  // listed, but its writer drops empty strings
      EXPECT_EQ(found, nullptr);
      continue;
    }
    ASSERT_NE(found, nullptr) << key;
    EXPECT_EQ(std::visit(ToJson{}, *found), value) << key;
  }
  EXPECT_TRUE(std::holds_alternative<uint64_t>(*metadata.Find("test.u64")));
  EXPECT_TRUE(std::holds_alternative<int64_t>(*metadata.Find("test.u32")));
  EXPECT_EQ(metadata.keys().front(), "general.architecture");
}

TEST(Golden, TypesTensors) {
  const auto checkpoint = MustOpen(kTypes);
  ASSERT_NE(checkpoint, nullptr);
  const json expected = LoadJson(kTypesCase)["tensors"];
  EXPECT_EQ(checkpoint->tensors().size() + checkpoint->unsupported().size(),
            expected.size());
  size_t unsupported = 0;
  for (const auto& [name, value] : expected.items()) {
    const std::string type = value["type"];
    const Tensor* tensor = checkpoint->FindTensor(name);
    const bool known = type.substr(0, 2) != "TQ" &&
                       (type.substr(0, 2) != "IQ" || type == "IQ4_NL");
    if (!known) {
      ++unsupported;
      EXPECT_EQ(tensor, nullptr) << name;
      const auto status = checkpoint->RequireTensor(name).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
      EXPECT_EQ(status.message(), std::string(kTypes) + ": tensor " + name +
                                      ": type " + type + " is not supported");
      continue;
    }
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(Traits(tensor->type).name, type) << name;
    EXPECT_EQ(json(tensor->shape), value["shape"]) << name;
    EXPECT_EQ(tensor->data.size(), BytesOf(tensor->type, tensor->elements()));
  }
  EXPECT_EQ(unsupported, checkpoint->unsupported().size());
}

template <class T>
std::vector<T> Values(const Checkpoint& checkpoint, const Tensor& tensor) {
  std::vector<T> values(tensor.elements());
  const absl::Status read =
      checkpoint.Read(tensor, 0,
                      absl::MakeSpan(reinterpret_cast<uint8_t*>(values.data()),
                                     values.size() * sizeof(T)));
  EXPECT_TRUE(read.ok()) << read;
  return values;
}

TEST(Golden, TypesIntegerValues) {
  const auto checkpoint = MustOpen(kTypes);
  ASSERT_NE(checkpoint, nullptr);
  const json expected = LoadJson(kTypesCase)["tensors"];
  size_t compared = 0;
  for (const Tensor& tensor : checkpoint->tensors()) {
    const json& entry = expected[tensor.name];
    if (!entry.contains("values")) continue;
    json found;
    if (tensor.type == DType::kI8) found = Values<int8_t>(*checkpoint, tensor);
    if (tensor.type == DType::kI16) {
      found = Values<int16_t>(*checkpoint, tensor);
    }
    if (tensor.type == DType::kI32) {
      found = Values<int32_t>(*checkpoint, tensor);
    }
    if (tensor.type == DType::kI64) {
      found = Values<int64_t>(*checkpoint, tensor);
    }
    if (tensor.type == DType::kF64) found = Values<double>(*checkpoint, tensor);
    EXPECT_EQ(found, entry["values"]) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(compared, 5u);
}

TEST(Golden, GgufModel) {
  const auto checkpoint = MustOpen(kQ4);
  ASSERT_NE(checkpoint, nullptr);
  const json expected = LoadJson(kQ4Case)["tensors"];
  EXPECT_EQ(checkpoint->tensors().size(), expected.size());
  for (const Tensor& tensor : checkpoint->tensors()) {
    ASSERT_TRUE(expected.contains(tensor.name)) << tensor.name;
    EXPECT_EQ(json(tensor.shape), expected[tensor.name]["shape"]);
    EXPECT_EQ(Traits(tensor.type).name,
              expected[tensor.name]["type"].get<std::string>());
    if (tensor.type == DType::kF32) {
      const auto values = Values<float>(*checkpoint, tensor);
      const json& entry = expected[tensor.name];
      for (size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(values[i], entry["first8"][i].get<float>());
        EXPECT_EQ(values[values.size() - 8 + i],
                  entry["last8"][i].get<float>());
      }
    }
  }
  // As a folder that holds one GGUF file (its config-like JSON is no config).
  const auto folder = MustOpen("tests/data/gguf/llama_q4_k_m");
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(folder->kind(), CheckpointKind::kGguf);
  EXPECT_EQ(folder->path(), "tests/data/gguf/llama_q4_k_m");
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
