// Weights quantized while loading against the file that `quantize` writes: the
// same logits, bit for bit, for folders of several layouts and types.
#include <stdio.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "simd/quantize.h"
#include "tests/model/model_folder.h"
#include "tools/quantize.h"

namespace lanewise {
namespace {

std::string Gguf(const std::string& name) {
  return absl::StrCat("tests/data/gguf/llama_", name, "/model.gguf");
}

using Shape = std::vector<size_t>;
using Shapes = std::vector<std::pair<std::string, Shape>>;

// Writes model.safetensors with arbitrary values of `type`.
void WriteTensors(ModelFolder* folder, const Shapes& shapes, DType type) {
  nlohmann::ordered_json header;
  std::string data;
  uint32_t state = 1;
  for (const auto& [name, shape] : shapes) {
    size_t elements = 1;
    for (const size_t size : shape) elements *= size;
    std::vector<float> values(elements);
    for (float& value : values) {
      state = state * 1664525 + 1013904223;
      value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-33f;
      if (shape.size() == 1) value += 1.0f;
    }
    std::string bytes(BytesOf(type, elements), '\0');
    Encode(type, values.data(), elements,
           reinterpret_cast<uint8_t*>(bytes.data()));
    header[name] = {
        {"dtype", Traits(type).name},
        {"shape", shape},
        {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string prefix(8, '\0');
  for (size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(size >> 8 * i);
  folder->Write("model.safetensors", prefix + text + data);
}

// Two layers of the width asked for.
std::unique_ptr<ModelFolder> Llama(size_t width, DType type) {
  auto folder = std::make_unique<ModelFolder>("llama");
  folder->EditJson("config.json", [&](auto& json) {
    json["hidden_size"] = width;
    json["intermediate_size"] = 2 * width;
    json["num_hidden_layers"] = 2;
    json["num_attention_heads"] = 4;
    json["num_key_value_heads"] = 2;
    json["head_dim"] = width / 4;
  });
  Shapes shapes = {{"model.embed_tokens.weight", {560, width}},
                   {"lm_head.weight", {560, width}},
                   {"model.norm.weight", {width}}};
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = absl::StrCat("model.layers.", layer, ".");
    const Shapes own = {{"input_layernorm.weight", {width}},
                        {"post_attention_layernorm.weight", {width}},
                        {"self_attn.q_proj.weight", {width, width}},
                        {"self_attn.k_proj.weight", {width / 2, width}},
                        {"self_attn.v_proj.weight", {width / 2, width}},
                        {"self_attn.o_proj.weight", {width, width}},
                        {"mlp.gate_proj.weight", {2 * width, width}},
                        {"mlp.up_proj.weight", {2 * width, width}},
                        {"mlp.down_proj.weight", {width, 2 * width}}};
    for (const auto& [name, shape] : own) shapes.push_back({at + name, shape});
  }
  WriteTensors(folder.get(), shapes, type);
  return folder;
}

// A router, and experts that GGUF stacks.
std::unique_ptr<ModelFolder> Mixtral(DType type) {
  auto folder = std::make_unique<ModelFolder>("llama");
  folder->EditJson("config.json", [](auto& json) {
    json["architectures"] = {"MixtralForCausalLM"};
    json["model_type"] = "mixtral";
    json["hidden_size"] = 64;
    json["intermediate_size"] = 96;
    json["num_hidden_layers"] = 1;
    json["num_attention_heads"] = 4;
    json["num_key_value_heads"] = 2;
    json["head_dim"] = 16;
    json["num_local_experts"] = 3;
    json["num_experts_per_tok"] = 2;
  });
  const std::string at = "model.layers.0.";
  Shapes shapes = {{"model.embed_tokens.weight", {560, 64}},
                   {"lm_head.weight", {560, 64}},
                   {"model.norm.weight", {64}},
                   {at + "input_layernorm.weight", {64}},
                   {at + "post_attention_layernorm.weight", {64}},
                   {at + "self_attn.q_proj.weight", {64, 64}},
                   {at + "self_attn.k_proj.weight", {32, 64}},
                   {at + "self_attn.v_proj.weight", {32, 64}},
                   {at + "self_attn.o_proj.weight", {64, 64}},
                   {at + "block_sparse_moe.gate.weight", {3, 64}}};
  for (int expert = 0; expert < 3; ++expert) {
    const std::string own =
        absl::StrCat(at, "block_sparse_moe.experts.", expert, ".");
    shapes.push_back({own + "w1.weight", {96, 64}});
    shapes.push_back({own + "w2.weight", {64, 96}});
    shapes.push_back({own + "w3.weight", {96, 64}});
  }
  WriteTensors(folder.get(), shapes, type);
  return folder;
}

// Matrices stored transposed, fused, with biases; tied embeddings.
std::unique_ptr<ModelFolder> Gpt2(DType type) {
  auto folder = std::make_unique<ModelFolder>("gpt2");
  folder->EditJson("config.json", [](auto& json) {
    json["n_embd"] = 64;
    json["n_layer"] = 1;
  });
  const std::string at = "transformer.h.0.";
  const Shapes shapes = {{"transformer.wte.weight", {512, 64}},
                         {"transformer.wpe.weight", {96, 64}},
                         {"transformer.ln_f.weight", {64}},
                         {"transformer.ln_f.bias", {64}},
                         {at + "ln_1.weight", {64}},
                         {at + "ln_1.bias", {64}},
                         {at + "ln_2.weight", {64}},
                         {at + "ln_2.bias", {64}},
                         {at + "attn.c_attn.weight", {64, 192}},
                         {at + "attn.c_attn.bias", {192}},
                         {at + "attn.c_proj.weight", {64, 64}},
                         {at + "attn.c_proj.bias", {64}},
                         {at + "mlp.c_fc.weight", {64, 256}},
                         {at + "mlp.c_fc.bias", {256}},
                         {at + "mlp.c_proj.weight", {256, 64}},
                         {at + "mlp.c_proj.bias", {64}}};
  WriteTensors(folder.get(), shapes, type);
  return folder;
}

// Of every position of a fixed prompt.
std::vector<float> Logits(const std::string& path,
                          std::optional<DType> weights) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return {};
  const auto context = std::move(Context::Create({})).value();
  LoadOptions load;
  load.weights = weights;
  auto model = Model::Load(**checkpoint, *context, load);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  auto executor = Executor::Create(**model, *context, {});
  EXPECT_TRUE(executor.ok()) << executor.status();
  KvCache cache(KvPagePool::Create((*model)->spec(), CacheType::kF32, 1 << 26));
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 23; ++i) ids.push_back(3 + i * 37 % 250);
  EXPECT_TRUE(cache.Reserve(ids.size()).ok());
  std::vector<float> logits(ids.size() * (*model)->spec().vocab_size);
  const Executor::Entry entry{ids, &cache, Executor::Logits::kAll};
  EXPECT_TRUE((*executor)->Forward({&entry, 1}, logits.data()).ok());
  return logits;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectTheFilesLogits(const std::string& model, DType type) {
  SCOPED_TRACE(Traits(type).name);
  const std::string out = testing::TempDir() + "/load_quantized.gguf";
  FILE* sink = tmpfile();
  Invocation call;
  call.program = "quantize";
  call.arguments = {"--model", model,    "--out",
                    out,       "--type", std::string(Traits(type).name)};
  if (!absl::EndsWith(model, ".gguf"))
    call.arguments.push_back("--no_tokenizer");
  call.io = {0, fileno(sink), fileno(sink)};
  EXPECT_EQ(QuantizeModel(call), 0);
  fclose(sink);
  const std::vector<float> loaded = Logits(model, type);
  EXPECT_TRUE(SameBits(loaded, Logits(out, std::nullopt)));
  EXPECT_FALSE(SameBits(loaded, Logits(model, std::nullopt)));
}

TEST(LoadQuantized, FoldersGiveTheLogitsOfTheQuantizedFile) {
  for (const DType stored : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(Traits(stored).name);
    const std::pair<const char*, std::unique_ptr<ModelFolder>> folders[] = {
        {"llama", Llama(64, stored)},
        {"gpt2", Gpt2(stored)},
        {"mixtral", Mixtral(stored)}};
    for (const auto& [name, folder] : folders) {
      SCOPED_TRACE(name);
      // Q4_K and Q6_K: rows are too short, so Q8_0.
      for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                               DType::kQ6_K, DType::kQ4_K}) {
        ExpectTheFilesLogits(folder->path(), type);
      }
    }
  }
}

TEST(LoadQuantized, SuperblocksAndHalves) {
  const auto folder = Llama(256, DType::kF32);
  for (const DType type : {DType::kQ4_K, DType::kQ6_K, DType::kQ4_0}) {
    ExpectTheFilesLogits(folder->path(), type);
  }
  const auto small = Llama(64, DType::kF32);
  ExpectTheFilesLogits(small->path(), DType::kBF16);
}

TEST(LoadQuantized, GgufFilesToo) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_1, DType::kBF16}) {
    ExpectTheFilesLogits(Gguf("f32"), type);
  }
}

// It would be F32 in memory.
TEST(LoadQuantized, TypesWithoutKernelsGainToo) {
  ExpectTheFilesLogits(Gguf("q5_0"), DType::kQ8_0);
}

}  // namespace
}  // namespace lanewise
