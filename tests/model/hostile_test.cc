// Models whose files change, lie or make no sense: each is an error that names
// the file, never a crash or a wrong model.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kGguf[] = "tests/data/gguf/llama_q4_1/model.gguf";

absl::Status LoadStatus(const Checkpoint& checkpoint) {
  auto context = Context::Create({});
  if (!context.ok()) return context.status();
  return Model::Load(checkpoint, **context, {}).status();
}

absl::Status LoadStatus(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return checkpoint.status();
  return LoadStatus(**checkpoint);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// A writable copy of the GGUF model, away with the object.
class GgufCopy {
 public:
  GgufCopy()
      : path_(testing::TempDir() + "/hostile.gguf"), bytes_(ReadFile(kGguf)) {
    Write();
  }
  ~GgufCopy() { fs::remove(path_); }
  GgufCopy(const GgufCopy&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const { return bytes_.size(); }

  // Overwrites the value of a key of a four-byte type.
  template <class T>
  void SetValue(const std::string& key, T value) {
    static_assert(sizeof(T) == 4);
    const uint64_t length = key.size();
    std::string needle(reinterpret_cast<const char*>(&length), 8);
    const size_t at = bytes_.find(needle + key);
    ASSERT_NE(at, std::string::npos) << key;
    std::memcpy(&bytes_[at + 8 + key.size() + 4], &value, 4);
    Write();
  }

 private:
  void Write() { std::ofstream(path_, std::ios::binary) << bytes_; }

  std::string path_, bytes_;
};

TEST(HostileModel, L7FileCutShortAfterItWasOpenedIsAnError) {
  const GgufCopy gguf;
  const ModelFolder folder("llama");
  const std::string weights = folder.path() + "/model.safetensors";
  const struct {
    std::string open, cut;
  } cases[] = {{gguf.path(), gguf.path()}, {folder.path(), weights}};
  for (const auto& item : cases) {
    const std::string whole = ReadFile(item.cut);
    for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{0}}) {
      std::ofstream(item.cut, std::ios::binary) << whole;
      const auto checkpoint = Checkpoint::Open(item.open);
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      fs::resize_file(item.cut, size);
      const absl::Status status = LoadStatus(**checkpoint);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(item.cut), HasSubstr("truncated"),
                        HasSubstr("reading tensor")));
    }
  }
}

TEST(HostileModel, L7FileDeletedAfterItWasOpenedStillLoads) {
  const GgufCopy gguf;
  const auto checkpoint = Checkpoint::Open(gguf.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  fs::remove(gguf.path());
  EXPECT_TRUE(LoadStatus(**checkpoint).ok());
}

TEST(HostileModel, NoLayersIsAnError) {
  GgufCopy gguf;
  gguf.SetValue<uint32_t>("llama.block_count", 0);
  EXPECT_THAT(std::string(LoadStatus(gguf.path()).message()),
              AllOf(HasSubstr(gguf.path()), HasSubstr("llama.block_count"),
                    HasSubstr("an integer from 1 to")));
}

TEST(HostileModel, EpsilonThatGivesNoNumbersIsAnError) {
  GgufCopy gguf;
  for (const float eps : {-1e-5f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    gguf.SetValue("llama.attention.layer_norm_rms_epsilon", eps);
    EXPECT_THAT(std::string(LoadStatus(gguf.path()).message()),
                AllOf(HasSubstr(gguf.path()), HasSubstr("epsilon")))
        << eps;
  }
  gguf.SetValue("llama.attention.layer_norm_rms_epsilon", 0.0f);
  EXPECT_TRUE(LoadStatus(gguf.path()).ok());
  ModelFolder folder("gpt2");
  folder.EditJson("config.json",
                  [](auto& json) { json["layer_norm_epsilon"] = -0.5; });
  EXPECT_THAT(std::string(LoadStatus(folder.path()).message()),
              AllOf(HasSubstr(folder.path()), HasSubstr("-0.5")));
}

// An output matrix or a bias of a type that cannot be read is not an absent
// one: without it the model would be another.
TEST(HostileModel, OptionalTensorOfAnUnsupportedTypeIsAnError) {
  ModelFolder folder("llama");
  folder.EditTensors([](auto& header) {
    auto& head = header["lm_head.weight"];
    head["dtype"] = "F8_E5M2";
    head["shape"] = {4 * head["shape"][0].template get<int>(),
                     head["shape"][1]};
  });
  const absl::Status status = LoadStatus(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("F8_E5M2")));
}

TEST(HostileModel, MessagesCutTextOfTheFile) {
  const std::string longest(100'000, 'y');
  for (const char* key : {"model_type", "hidden_act"}) {
    ModelFolder folder("llama");
    folder.EditJson("config.json",
                    [&](auto& json) { json[key] = longest + "\n"; });
    const std::string message(LoadStatus(folder.path()).message());
    EXPECT_THAT(message, AllOf(HasSubstr(key), HasSubstr("yyy...")));
    EXPECT_LT(message.size(), 1000u);
  }
  ModelFolder folder("llama");
  folder.EditJson("config.json", [](auto& json) {
    json["rope_parameters"]["rope_type"] = "spi\nral\x1b[31m";
  });
  EXPECT_THAT(std::string(LoadStatus(folder.path()).message()),
              HasSubstr("spi\\nral\\x1b"));
}

TEST(HostileModel, CacheBeyondItsLimitIsRefusedBeforeItIsAllocated) {
  ModelSpec spec;
  LayerSpec layer;
  layer.attention.heads = layer.attention.kv_heads = 1;
  layer.attention.head_dim = layer.attention.value_dim = 16;
  spec.layers.assign(1, layer);
  const auto pool = KvPagePool::Create(spec, CacheType::kF16, size_t{1} << 20);
  KvCache cache(pool);
  ASSERT_TRUE(cache.Reserve(1).ok());
  const absl::Status status = cache.Reserve(size_t{1} << 60);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(pool->pages_in_use(), 1u);
  EXPECT_TRUE(cache.Reserve(65).ok());
}

}  // namespace
}  // namespace lanewise
