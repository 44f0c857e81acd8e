// The program `quantize`, called as a function.
#include "tools/quantize.h"

#include <stdio.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/quantize.h"
#include "tests/model/model_folder.h"
#include "tools/quantize_convert.h"
#include "tools/quantize_source.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kQ4km[] = "tests/data/gguf/llama_q4_k_m/model.gguf";
constexpr char kF32[] = "tests/data/gguf/llama_f32/model.gguf";

std::string ReadAll(FILE* file) {
  std::string text;
  rewind(file);
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;) {
    text.append(block, n);
  }
  return text;
}

struct Result {
  int exit_code;
  std::string out, err;
};

Result Invoke(std::vector<std::string> arguments) {
  FILE* out = tmpfile();
  FILE* err = tmpfile();
  Invocation call;
  call.program = "quantize";
  call.arguments = std::move(arguments);
  call.io = {0, fileno(out), fileno(err)};
  Result result;
  result.exit_code = QuantizeModel(call);
  result.out = ReadAll(out);
  result.err = ReadAll(err);
  fclose(out);
  fclose(err);
  return result;
}

// A folder for what the program writes.
class QuantizeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/quantize";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }

  std::string out() const { return folder_ + "/out.gguf"; }

  // The program must succeed.
  Result Quantize(const std::string& model, const std::string& type,
                  std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--model", model, "--out", out(), "--type", type});
    Result result = Invoke(std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(Files(), 1u);
    return result;
  }

  size_t Files() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      static_cast<void>(entry);
      ++count;
    }
    return count;
  }

  std::string folder_;
};

std::unique_ptr<Checkpoint> MustOpen(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

std::string Model(const std::string& name) {
  return "tests/data/models/" + name;
}

// Of every position of a fixed prompt.
std::vector<float> Logits(const std::string& path, ActivationType type) {
  const auto checkpoint = MustOpen(path);
  if (checkpoint == nullptr) return {};
  const auto context = std::move(Context::Create({})).value();
  auto model = Model::Load(*checkpoint, *context, {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  Executor::Options options;
  options.max_rows = 64;
  options.activations = type;
  auto executor = Executor::Create(**model, *context, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  const auto pool =
      KvPagePool::Create((*model)->spec(), CacheType::kF32, 1 << 26);
  KvCache cache(pool);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 41; ++i) ids.push_back(3 + i * 37 % 250);
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

// Root mean square of the difference over that of `a`.
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  return Compare(a.data(), b.data(), std::min(a.size(), b.size()))
      .RelativeRms();
}

struct FolderCase {
  const char* name;
  bool tokenizer;
};
constexpr FolderCase kFolders[] = {
    {"llama", true}, {"llama_bias_tied", false},    {"llama_f16", false},
    {"gpt2", true},  {"llama_sharded_bf16", false}, {"falcon_new", false},
};

TEST_F(QuantizeTest, FoldersAsF32GiveTheFoldersLogitsBitForBit) {
  for (const FolderCase& folder : kFolders) {
    SCOPED_TRACE(folder.name);
    std::vector<std::string> more;
    if (!folder.tokenizer) more.push_back("--no_tokenizer");
    Quantize(Model(folder.name), "f32", more);
    EXPECT_TRUE(SameBits(Logits(Model(folder.name), ActivationType::kF32),
                         Logits(out(), ActivationType::kF32)));
    if (absl::StrContains(folder.name, "16")) continue;
    EXPECT_TRUE(SameBits(Logits(Model(folder.name), ActivationType::kNative),
                         Logits(out(), ActivationType::kNative)));
  }
}

// The llama folder under other configurations: scalings of RoPE (that of Llama
// 3 becomes a tensor), and a family that GGUF has as llama.
TEST_F(QuantizeTest, OtherConfigurationsReloadBitForBit) {
  const struct {
    const char *model_type, *rope;
  } kCases[] = {
      {"llama", R"({"rope_type": "linear", "factor": 4.0})"},
      {"llama", R"({"rope_type": "llama3", "factor": 8.0,
                    "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 32})"},
      {"llama", R"({"rope_type": "yarn", "factor": 4.0,
                    "original_max_position_embeddings": 32})"},
      {"mistral", R"({"rope_type": "default", "rope_theta": 1000000.0})"},
  };
  const std::vector<float> plain =
      Logits(Model("llama"), ActivationType::kNative);
  for (const auto& row : kCases) {
    ModelFolder folder("llama");
    folder.EditJson("config.json", [&](nlohmann::json& config) {
      config["model_type"] = row.model_type;
      config["rope_parameters"] = nlohmann::json::parse(row.rope);
      config.erase("rope_theta");
      config["sliding_window"] = nullptr;
    });
    Quantize(folder.path(), "F32");
    const std::vector<float> expected =
        Logits(folder.path(), ActivationType::kNative);
    EXPECT_TRUE(SameBits(expected, Logits(out(), ActivationType::kNative)))
        << row.model_type << row.rope;
    EXPECT_FALSE(SameBits(expected, plain)) << row.rope;
  }
}

// Bounds: a few times the rounding of one weight (2^-11 for F16, 2^-8 for BF16
// and Q8_0, 2^-4 with four bits), since layers add up. The files' rows are
// whole blocks of the types they are written in.
TEST_F(QuantizeTest, OtherTypesLoadAndComeNear) {
  const struct {
    const char* type;
    std::string model;
    double bound;
  } kCases[] = {
      {"F16", Model("llama"), 0.003},
      {"F16", Model("gpt2"), 0.003},
      {"BF16", Model("llama"), 0.02},
      {"BF16", Model("gpt2"), 0.02},
      {"Q8_0", kF32, 0.03},
      {"Q4_0", kF32, 0.3},
      {"Q4_1", kF32, 0.3},
      {"Q4_K", kQ4km, 0.3},
      {"Q5_K", kQ4km, 0.15},
      {"Q6_K", kQ4km, 0.1},
  };
  for (const auto& row : kCases) {
    const std::vector<float> expected = Logits(row.model, ActivationType::kF32);
    Quantize(row.model, row.type);
    EXPECT_LE(Difference(expected, Logits(out(), ActivationType::kF32)),
              row.bound)
        << row.model << " " << row.type;
    const auto file = MustOpen(out());
    EXPECT_EQ(Traits(file->FindTensor("blk.0.ffn_up.weight")->type).name,
              row.type);
    const std::vector<float> native = Logits(out(), ActivationType::kNative);
    EXPECT_EQ(FirstNonFinite(native.data(), native.size()), native.size());
  }
}

TEST_F(QuantizeTest, TokenizersComeAlong) {
  for (const char* name : {"llama", "gpt2"}) {
    Quantize(Model(name), "Q8_0");
    auto before = Tokenizer::Load(*MustOpen(Model(name)));
    auto after = Tokenizer::Load(*MustOpen(out()));
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(after.ok()) << after.status();
    for (const char* text :
         {"A text of several words, 2 numbers (42) and\n\nlines.", "",
          "  spaces", "\xC3\xA9t\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
          "<s> is text </s> <|endoftext|>"}) {
      for (const bool special : {false, true}) {
        EncodeOptions options;
        options.add_special_tokens = special;
        options.parse_special_tokens = special;
        const auto ids = (*before)->Encode(text, options);
        EXPECT_EQ(*ids, *(*after)->Encode(text, options)) << name << text;
        EXPECT_EQ((*before)->Decode(*ids, {}), (*after)->Decode(*ids, {}));
      }
    }
  }
}

TEST_F(QuantizeTest, GgufKeepsItsMetadata) {
  Quantize(kF32, "F16");
  const auto from = MustOpen(kF32), to = MustOpen(out());
  for (const std::string& key : from->metadata().keys()) {
    if (key == "general.file_type") continue;
    ASSERT_TRUE(to->metadata().Has(key)) << key;
    EXPECT_EQ(*to->metadata().Find(key), *from->metadata().Find(key)) << key;
    EXPECT_EQ(to->metadata().TypeOf(key), from->metadata().TypeOf(key)) << key;
  }
  EXPECT_EQ(to->metadata().keys().size(), from->metadata().keys().size());
  EXPECT_EQ(*to->metadata().GetUint("general.file_type", 99), 1u);
  EXPECT_EQ(*to->metadata().GetUint("general.quantization_version", 99), 2u);
  for (const Tensor& tensor : to->tensors()) {
    EXPECT_EQ(tensor.type, tensor.shape.size() == 1 ? DType::kF32 : DType::kF16)
        << tensor.name;
  }
}

TEST_F(QuantizeTest, TheDefaultTypes) {
  const Result result = Quantize(kQ4km, "Q4_K");
  const auto from = MustOpen(kQ4km), to = MustOpen(out());
  EXPECT_EQ(to->FindTensor("token_embd.weight")->type, DType::kQ6_K);
  EXPECT_EQ(to->FindTensor("blk.0.attn_norm.weight")->type, DType::kF32);
  EXPECT_EQ(to->FindTensor("blk.0.attn_v.weight")->type, DType::kQ4_K);
  // Was Q4_K: the same bytes.
  EXPECT_TRUE(to->FindTensor("blk.0.attn_q.weight")->data ==
              from->FindTensor("blk.0.attn_q.weight")->data);
  EXPECT_THAT(result.err, HasSubstr("tensors are quantized already"));
  EXPECT_EQ(*to->metadata().GetUint("general.file_type", 99), 14u);
}

TEST_F(QuantizeTest, KeepSetsTypesByName) {
  Quantize(kF32, "Q8_0",
           {"--keep", "blk.*.ffn_down.weight=F16", "--keep=*.ffn_*=bf16"});
  const auto to = MustOpen(out());
  EXPECT_EQ(to->FindTensor("blk.1.ffn_down.weight")->type, DType::kF16);
  EXPECT_EQ(to->FindTensor("blk.1.ffn_up.weight")->type, DType::kBF16);
  EXPECT_EQ(to->FindTensor("blk.1.attn_q.weight")->type, DType::kQ8_0);
}

TEST_F(QuantizeTest, N11RowsThatAreNoWholeBlocksFallBack) {
  const Result result = Quantize(Model("llama"), "Q4_K");
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("rows of 48 values are no multiple of 256, the block of "
                      "Q4_K: written as F16"),
            HasSubstr("the first blk.0.attn_q.weight")));
  const Result wide = Quantize(kF32, "Q6_K");
  EXPECT_THAT(wide.err,
              HasSubstr("rows of 64 values are no multiple of 256, the block "
                        "of Q6_K: written as Q8_0"));
  const auto to = MustOpen(out());
  EXPECT_EQ(to->FindTensor("blk.1.ffn_down.weight")->type, DType::kQ8_0);
}

TEST_F(QuantizeTest, ReportsEveryTensorAndTheTotals) {
  const Result result = Quantize(kF32, "Q8_0");
  const auto from = MustOpen(kF32);
  for (const Tensor& tensor : from->tensors()) {
    EXPECT_THAT(result.out, HasSubstr(absl::StrCat("\n", tensor.name, " ")));
  }
  EXPECT_THAT(result.out, AllOf(HasSubstr("[400, 64]"), HasSubstr("rel. RMS"),
                                HasSubstr("total: 21 tensors, "),
                                HasSubstr("bits a value")));
  EXPECT_THAT(result.out,
              HasSubstr(absl::StrCat(
                  out(), ": ", std::filesystem::file_size(out()), " bytes\n")));
  EXPECT_EQ(result.err, "");
}

TEST_F(QuantizeTest, AnyNumberOfThreadsGivesTheSameFile) {
  const auto bytes = [&](const char* threads) {
    Quantize(kQ4km, "Q5_K", {"--threads", threads});
    std::string all;
    const auto file = MustOpen(out());
    for (const Tensor& tensor : file->tensors()) {
      all.append(reinterpret_cast<const char*>(tensor.data.data()),
                 tensor.data.size());
    }
    return all;
  };
  const std::string one = bytes("1");
  EXPECT_TRUE(one == bytes("3"));
  EXPECT_TRUE(one == bytes("7"));
}

TEST_F(QuantizeTest, N10NotANumberIsRefusedByTensorAndRow) {
  ModelFolder folder("llama_bias_tied");
  std::string bytes = folder.Read("model.safetensors");
  // The last tensor of the file is a norm or matrix of floats.
  const uint32_t nan = 0x7FC00000u;
  std::memcpy(&bytes[bytes.size() - 4], &nan, 4);
  folder.Write("model.safetensors", bytes);
  const Result result = Invoke({"--model", folder.path(), "--out", out(),
                                "--type", "Q8_0", "--no_tokenizer"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(folder.path()), HasSubstr("tensor "),
                                HasSubstr("row "), HasSubstr("found NaN")));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(QuantizeTest, WhatGgufCannotExpressIsAnError) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } kCases[] = {
      // Scores divided by the layer's number.
      {{"--model", Model("gpt2_scaled"), "--no_tokenizer"}, "has no key for"},
      // ReLU where GGUF's GPT-2 has GELU.
      {{"--model", Model("gpt2_hubstyle"), "--no_tokenizer"},
       "the folder says \"ffn: 100, relu\""},
      {{"--model", Model("llama_bias_tied")}, "--no_tokenizer writes the file"},
      {{"--model", "tests/data/gguf/types/types.gguf"}, "cannot be decoded"},
      {{"--model", "no/such/model"}, "no/such/model"},
      {{"--model", kF32, "--keep", "no_such*=F16"}, "no tensor is named like"},
  };
  for (const auto& row : kCases) {
    std::vector<std::string> arguments = row.arguments;
    arguments.insert(arguments.end(), {"--out", out(), "--type", "F32"});
    const Result result = Invoke(std::move(arguments));
    EXPECT_EQ(result.exit_code, 1) << row.message;
    EXPECT_THAT(result.err, HasSubstr(row.message));
    EXPECT_EQ(Files(), 0u);
  }
}

TEST_F(QuantizeTest, WrongUsage) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } kCases[] = {
      {{}, "expected --model PATH"},
      {{"--model", kF32, "--type", "F32"}, "expected --out"},
      {{"--model", kF32, "--out", "x"}, "expected --type"},
      {{"--model", kF32, "--out", "x", "--type", "Q9"}, "Q4_1, Q4_0, found"},
      {{"--model", kF32, "--out", "x", "--type", "Q2_K"}, "found \"Q2_K\""},
      {{"--model", kF32, "--out", "x", "--type", "F32", "--keep", "Q8_0"},
       "expected NAME_PATTERN=TYPE"},
      {{"--model", kF32, "--out", "x", "--type", "F32", "--keep", "a=b"},
       "found \"b\""},
      {{"model.gguf"}, "expected flags only"},
      {{"--threads", "-1"}, "--threads"},
  };
  for (const auto& row : kCases) {
    const Result result = Invoke(row.arguments);
    EXPECT_EQ(result.exit_code, 2) << row.message;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(row.message), HasSubstr("(see --help)")));
  }
}

TEST_F(QuantizeTest, TheOutputMustBeAFile) {
  const Result folder =
      Invoke({"--model", kF32, "--out", folder_, "--type", "F32"});
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_THAT(folder.err, HasSubstr("found a directory"));
  const Result none = Invoke(
      {"--model", kF32, "--out", folder_ + "/a/b.gguf", "--type", "F32"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("/a/b.gguf: cannot create the file"));
}

TEST_F(QuantizeTest, HelpNamesEveryFlagAndTheDefaults) {
  const Result result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("--model"), HasSubstr("--keep"),
                    HasSubstr("--no_tokenizer"), HasSubstr("--threads"),
                    HasSubstr("token embedding and output matrix")));
}

// What Ctrl-C does: the work ends and nothing stays.
TEST_F(QuantizeTest, AnInterruptedConversionLeavesNothing) {
  const auto checkpoint = MustOpen(kF32);
  auto source = MakeQuantizeSource(*checkpoint, {});
  ASSERT_TRUE(source.ok()) << source.status();
  const SourceTensor& tensor = (*source)->tensors()[0];
  {
    auto writer =
        GgufWriter::Create(out(), (*source)->metadata(),
                           {{tensor.name, DType::kQ8_0, tensor.shape}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ConvertOptions options;
    uint64_t seen = 0;
    options.progress = [&](uint64_t elements) {
      seen = elements;
      return absl::CancelledError("interrupted");
    };
    const auto context = std::move(Context::Create({})).value();
    const auto converted = ConvertTensor(**source, 0, DType::kQ8_0, *context,
                                         options, writer->get());
    EXPECT_EQ(converted.status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(seen, tensor.elements());
  }
  EXPECT_EQ(Files(), 0u);
}

}  // namespace
}  // namespace lanewise
