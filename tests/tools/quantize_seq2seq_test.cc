// The program `quantize` on encoder-decoders: T5 as GGUF.
#include <stdio.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "simd/quantize.h"
#include "tests/conformance/seq2seq_model.h"
#include "tests/model/model_folder.h"
#include "tools/quantize.h"

namespace lanewise {
namespace {

using testing::HasSubstr;

constexpr char kT5[] = "tests/data/models/t5";

// The exit code; `err` gets what the program says.
int Quantize(const std::string& model, const std::string& out, std::string* err,
             const char* type = "f32") {
  FILE* file = tmpfile();
  Invocation call;
  call.program = "quantize";
  call.arguments = {"--model", model, "--out", out, "--type", type};
  call.io = {0, fileno(file), fileno(file)};
  const int code = QuantizeModel(call);
  rewind(file);
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;) {
    err->append(block, n);
  }
  fclose(file);
  return code;
}

// The encoder's rows and the decoder's logits for fixed ids.
struct Bits {
  std::vector<float> hidden, logits;
};

Bits BitsOf(const Checkpoint& checkpoint) {
  const auto context = std::move(Context::Create({})).value();
  auto model = Seq2SeqModel::Load(checkpoint, *context);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  std::vector<int32_t> source, target;
  for (int32_t i = 0; i < 41; ++i) source.push_back(3 + i * 37 % 250);
  for (int32_t i = 0; i < 19; ++i) target.push_back(i * 31 % 250);
  auto encoded = (*model)->Encode(Seq2SeqInputs::FromIds({source}));
  EXPECT_TRUE(encoded.ok()) << encoded.status();
  auto decoded = (*model)->Decode(*encoded, {target});
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return {std::move(encoded->stack.hidden), std::move(decoded->stack.logits)};
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

class QuantizeSeq2Seq : public testing::Test {
 protected:
  void SetUp() override {
    out_ = testing::TempDir() + "/seq2seq.gguf";
    std::filesystem::remove(out_);
  }

  std::unique_ptr<Checkpoint> Converted(const std::string& model) {
    std::string err;
    EXPECT_EQ(Quantize(model, out_, &err), 0) << err;
    auto checkpoint = Checkpoint::Open(out_);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }

  std::string out_;
};

TEST_F(QuantizeSeq2Seq, T5AsF32GivesTheFoldersLogitsBitForBit) {
  const auto gguf = Converted(kT5);
  ASSERT_NE(gguf, nullptr);
  const Bits found = BitsOf(*gguf);
  const Bits expected = BitsOf(*std::move(Checkpoint::Open(kT5)).value());
  ExpectSameBits(found.hidden, expected.hidden);
  ExpectSameBits(found.logits, expected.logits);
}

TEST_F(QuantizeSeq2Seq, TheTokenizerComesAlong) {
  const auto gguf = Converted(kT5);
  ASSERT_NE(gguf, nullptr);
  const auto found = Tokenizer::Load(*gguf);
  const auto expected =
      Tokenizer::Load(*std::move(Checkpoint::Open(kT5)).value());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const char* text :
       {"The quick brown fox jumps", "It wasn't 42", " a  b\tc\n", "!!!!!!",
        "Caf\xC3\xA9 \xEF\xBC\xA1 \xE4\xBD\xA0", ""}) {
    EXPECT_EQ(*(*found)->Encode(text, {}), *(*expected)->Encode(text, {}))
        << text;
  }
}

// The names and keys by which others know such files.
TEST_F(QuantizeSeq2Seq, T5HasTheNamesOfTheArchitecture) {
  const auto gguf = Converted(kT5);
  ASSERT_NE(gguf, nullptr);
  EXPECT_EQ(gguf->tensors().size(), 55u);  // the embedding once
  for (const char* name :
       {"token_embd.weight", "enc.blk.0.attn_rel_b.weight",
        "enc.blk.2.attn_q.weight", "enc.blk.2.ffn_norm.weight",
        "enc.output_norm.weight", "dec.blk.0.attn_rel_b.weight",
        "dec.blk.1.cross_attn_norm.weight", "dec.blk.1.cross_attn_o.weight",
        "dec.blk.1.ffn_down.weight", "dec.output_norm.weight"}) {
    EXPECT_NE(gguf->FindTensor(name), nullptr) << name;
  }
  const std::pair<const char*, uint64_t> sizes[] = {
      {"t5.block_count", 3},
      {"t5.decoder_block_count", 2},
      {"t5.attention.relative_buckets_count", 32},
      {"t5.attention.key_length", 14},
      {"t5.decoder_start_token_id", 0}};
  for (const auto& [key, value] : sizes) {
    const auto found = gguf->metadata().GetUint(key, 1 << 20);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, value) << key;
  }
}

// A T5 folder with some fields of config.json replaced.
class PatchedT5 {
 public:
  explicit PatchedT5(const char* patch) : folder_("t5") {
    folder_.EditJson("config.json", [patch](nlohmann::json& config) {
      config.merge_patch(nlohmann::json::parse(patch));
    });
  }
  const std::string& path() const { return folder_.path(); }

 private:
  ModelFolder folder_;
};

TEST_F(QuantizeSeq2Seq, TheEncoderAloneIsAnArchitectureOfItsOwn) {
  const PatchedT5 folder(R"({"architectures": ["T5EncoderModel"]})");
  const auto gguf = Converted(folder.path());
  ASSERT_NE(gguf, nullptr);
  EXPECT_EQ(*gguf->metadata().GetString("general.architecture"), "t5encoder");
  EXPECT_EQ(gguf->FindTensor("dec.output_norm.weight"), nullptr);
  const auto context = std::move(Context::Create({})).value();
  const auto model = Model::Load(*gguf, *context, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->spec().encoder.empty());
}

// A feed-forward layer whose output no f16 holds.
TEST_F(QuantizeSeq2Seq, N2F16ComesNearAlsoBeyondTheRangeOfF16) {
  ModelFolder folder("t5");
  folder.EditValues(
      "encoder.block.1.layer.1.DenseReluDense.wo.weight",
      [](size_t i) { return static_cast<float>((i * 37) % 101) * 400.0f; });
  std::string err;
  ASSERT_EQ(Quantize(folder.path(), out_, &err, "f16"), 0) << err;
  const Bits found = BitsOf(*std::move(Checkpoint::Open(out_)).value());
  const Bits expected =
      BitsOf(*std::move(Checkpoint::Open(folder.path())).value());
  EXPECT_LT(Compare(expected.hidden.data(), found.hidden.data(),
                    expected.hidden.size())
                .RelativeRms(),
            0.01);
  EXPECT_LT(Compare(expected.logits.data(), found.logits.data(),
                    expected.logits.size())
                .RelativeRms(),
            0.01);
}

TEST_F(QuantizeSeq2Seq, WhatGgufCannotExpressIsAnError) {
  // Readers take the distance for granted, and the activation.
  for (const char* patch : {R"({"relative_attention_max_distance": 30})",
                            R"({"feed_forward_proj": "silu"})",
                            R"({"scale_decoder_outputs": false})"}) {
    const PatchedT5 folder(patch);
    std::string err;
    EXPECT_NE(Quantize(folder.path(), out_, &err), 0) << patch;
    EXPECT_THAT(err, HasSubstr("has no key for a part of this model"));
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
}

}  // namespace
}  // namespace lanewise
