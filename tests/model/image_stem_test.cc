// An image's rows against a scalar reference, and a vision model end to end in
// shapes that no published one has.
#include "model/image_stem.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "nlohmann/json.hpp"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kWidth = 6, kChannels = 2, kSide = 7, kPatch = 3;
constexpr size_t kPatches = 4;  // one column and one row of pixels are left
constexpr size_t kValues = kChannels * kPatch * kPatch;

struct NamedTensor {
  std::string name;
  std::vector<size_t> shape;
  std::vector<float> values;
};

std::vector<NamedTensor> Tensors() {
  TestRandom random(5);
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<size_t> shape) {
    size_t n = 1;
    for (const size_t size : shape) n *= size;
    tensors.push_back({name, std::move(shape), random.Uniforms(n)});
  };
  add("embeddings.cls_token", {1, 1, kWidth});
  add("embeddings.position_embeddings", {1, 1 + kPatches, kWidth});
  const std::string patch = "embeddings.patch_embeddings.projection.";
  add(patch + "weight", {kWidth, kChannels, kPatch, kPatch});
  add(patch + "bias", {kWidth});
  const std::string layer = "encoder.layer.0.";
  for (const char* name : {"layernorm_before", "layernorm_after"}) {
    add(layer + name + ".weight", {kWidth});
    add(layer + name + ".bias", {kWidth});
  }
  for (const char* name :
       {"attention.attention.query", "attention.attention.key",
        "attention.attention.value", "attention.output.dense",
        "intermediate.dense", "output.dense"}) {
    add(layer + name + ".weight", {kWidth, kWidth});
    add(layer + name + ".bias", {kWidth});
  }
  add("layernorm.weight", {kWidth});
  add("layernorm.bias", {kWidth});
  return tensors;
}

nlohmann::json Config() {
  return {{"model_type", "vit"},      {"architectures", {"ViTModel"}},
          {"hidden_size", kWidth},    {"num_hidden_layers", 1},
          {"num_attention_heads", 2}, {"intermediate_size", kWidth},
          {"image_size", kSide},      {"patch_size", kPatch},
          {"num_channels", kChannels}};
}

class Folder {
 public:
  Folder() : path_(testing::TempDir() + "/image_stem") {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }

  absl::StatusOr<std::unique_ptr<const Model>> Load(
      const nlohmann::json& config, const std::vector<NamedTensor>& tensors,
      const Context& context) const {
    std::ofstream(path_ + "/config.json") << config;
    nlohmann::ordered_json header;
    std::string data;
    for (const NamedTensor& tensor : tensors) {
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(tensor.values.data()),
                  tensor.values.size() * sizeof(float));
      header[tensor.name] = {{"dtype", "F32"},
                             {"shape", tensor.shape},
                             {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::ofstream out(path_ + "/model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), sizeof(size));
    out << text << data;
    out.close();
    const auto checkpoint = Checkpoint::Open(path_);
    if (!checkpoint.ok()) return checkpoint.status();
    return Model::Load(**checkpoint, context, {});
  }

 private:
  const std::string path_;
};

TEST(ImageStem, RowsAreTheClassTokenAndAProjectionOfEachPatch) {
  const std::vector<NamedTensor> tensors = Tensors();
  const Folder folder;
  const std::vector<float> pixels =
      TestRandom(9).Uniforms(kChannels * kSide * kSide);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const auto model = folder.Load(Config(), tensors, *context);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto stem = ImageStem::Create(**model, *context);
    ASSERT_TRUE(stem.ok()) << stem.status();
    ASSERT_EQ((*stem)->rows(), 1 + kPatches);
    std::vector<float> rows((*stem)->rows() * kWidth);
    ASSERT_TRUE((*stem)->Run(pixels, rows.data()).ok());
    for (size_t c = 0; c < kWidth; ++c) {
      EXPECT_EQ(rows[c], tensors[0].values[c]);
    }
    for (size_t patch = 0; patch < kPatches; ++patch) {
      const size_t top = patch / 2 * kPatch, left = patch % 2 * kPatch;
      for (size_t c = 0; c < kWidth; ++c) {
        float sum = 0.0f;
        for (size_t k = 0; k < kValues; ++k) {
          const size_t channel = k / (kPatch * kPatch);
          const size_t y = top + k / kPatch % kPatch, x = left + k % kPatch;
          sum = std::fma(pixels[(channel * kSide + y) * kSide + x],
                         tensors[2].values[c * kValues + k], sum);
        }
        sum += tensors[3].values[c];
        EXPECT_NEAR(rows[(1 + patch) * kWidth + c], sum,
                    target.has_fma() ? 0.0f : 1e-5f)
            << patch << " " << c;
      }
    }
  });
}

TEST(ImageStem, OtherNumbersOfPixelsAreRefused) {
  const Folder folder;
  const auto context = MakeContext(Target::Best());
  const auto model = folder.Load(Config(), Tensors(), *context);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto stem = ImageStem::Create(**model, *context);
  ASSERT_TRUE(stem.ok()) << stem.status();
  std::vector<float> rows((*stem)->rows() * kWidth);
  for (const size_t count : {0, 97, 99}) {
    const std::vector<float> pixels(count);
    const absl::Status status = (*stem)->Run(pixels, rows.data());
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("expected 2 x 7 x 7 pixel values, found " +
                          std::to_string(count)));
  }
}

// Reads the rows; ids are refused, as are more rows than positions.
TEST(ImageStem, TheExecutorTakesRowsOnly) {
  const Folder folder;
  const auto context = MakeContext(Target::Best());
  const auto model = folder.Load(Config(), Tensors(), *context);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->spec().head.task, HeadTask::kNone);  // no pooler stored
  const auto executor = Executor::Create(**model, *context, {});
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::vector<float> rows(6 * kWidth, 0.5f), hidden(6 * kWidth);
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  Executor::Entry entry;
  entry.vectors = absl::MakeConstSpan(rows).first(5 * kWidth);
  EXPECT_TRUE((*executor)->Forward({&entry, 1}, outputs).ok());
  entry.vectors = rows;
  EXPECT_THAT(std::string((*executor)->Forward({&entry, 1}, outputs).message()),
              HasSubstr("expected at most 5 positions"));
  const int32_t ids[] = {0, 1};
  Executor::Entry tokens;
  tokens.ids = ids;
  EXPECT_THAT(
      std::string((*executor)->Forward({&tokens, 1}, outputs).message()),
      HasSubstr("expected vectors"));
}

TEST(ImageStem, ConfigurationsThatContradictTheWeights) {
  const Folder folder;
  const auto context = MakeContext(Target::Best());
  const struct {
    const char* key;
    int value;
    int side;  // of the image
    const char* message;
  } cases[] = {
      {"patch_size", 2, 5, "expected shape [6, 2, 2, 2]"},
      {"image_size", 10, 10, "expected shape [1, 10, 6]"},
      {"num_channels", 3, 7, "expected shape [6, 3, 3, 3]"},
      {"patch_size", 8, 7, "patch_size: expected an integer from 1 to 7"},
      {"image_size", 20000, 20000,
       "image_size: expected an integer from 1 to 16384"},
      {"num_channels", 16384, 16384, "pixel values: expected at most"},
  };
  for (const auto& c : cases) {
    nlohmann::json config = Config();
    config["image_size"] = c.side;
    config[c.key] = c.value;
    const auto model = folder.Load(config, Tensors(), *context);
    ASSERT_FALSE(model.ok()) << c.key;
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(c.message));
  }
}

TEST(ImageStem, ModelsOfTextHaveNone) {
  const auto context = MakeContext(Target::Best());
  const auto checkpoint = Checkpoint::Open("tests/data/models/bert");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto model = Model::Load(**checkpoint, *context, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(ImageStem::Create(**model, *context).ok());
}

}  // namespace
}  // namespace lanewise
