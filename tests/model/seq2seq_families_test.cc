// Readers of encoder-decoders: what depends on single fields, and what is
// refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/families/family.h"
#include "model/format/metadata.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The configuration of a case of tests/model/families, patched (RFC 7386).
json Config(const std::string& name, const std::string& patch) {
  std::ifstream in("tests/model/families/configs.json");
  json config = json::parse(in)[name]["newer"];
  config.merge_patch(json::parse(patch));
  return config;
}

const Family& FamilyOf(const std::string& type) {
  for (const Family* family : Families()) {
    for (const absl::string_view name : family->model_types) {
      if (name == type) return *family;
    }
  }
  ADD_FAILURE() << type;
  return *Families()[0];
}

absl::StatusOr<ModelSpec> Read(const std::string& name,
                               const std::string& patch) {
  const json config = Config(name, patch);
  return FamilyOf(config["model_type"].get<std::string>())
      .from_config(config, "config.json");
}

struct Refused {
  const char* name;
  const char* base;
  const char* patch;
  const char* message;
};

class RefusedSeq2Seq : public testing::TestWithParam<Refused> {};

TEST_P(RefusedSeq2Seq, SaysWhy) {
  auto spec = Read(GetParam().base, GetParam().patch);
  if (spec.ok()) {
    const absl::Status status = CheckSpec(*spec, "config.json");
    ASSERT_FALSE(status.ok());
    spec = status;
  }
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("config.json: "));
  EXPECT_THAT(std::string(spec.status().message()),
              HasSubstr(GetParam().message));
}

constexpr Refused kRefused[] = {
    {"T5WithoutHeads", "t5", R"({"num_heads": null})", "num_heads"},
    {"T5UnknownActivation", "t5", R"({"feed_forward_proj": "gated-wiggle"})",
     "feed_forward_proj: activation 'wiggle' is not supported"},
    {"T5WithoutBuckets", "t5", R"({"relative_attention_num_buckets": 0})",
     "relative_attention_num_buckets"},
    {"T5BucketsBeyondTheLimit", "t5",
     R"({"relative_attention_num_buckets": 1000000})",
     "relative_attention_num_buckets"},
    {"T5DistanceOfZero", "t5", R"({"relative_attention_max_distance": 0})",
     "relative_attention_max_distance"},
    {"T5DistanceBeyondTheLimit", "t5",
     R"({"relative_attention_max_distance": 100000})",
     "relative_attention_max_distance"},
    {"T5DecoderWithoutLayers", "t5", R"({"num_decoder_layers": 0})",
     "num_decoder_layers"},
    {"BartHeadsThatDoNotDivide", "bart", R"({"decoder_attention_heads": 7})",
     "decoder_attention_heads: expected a divisor of the width 48, found 7"},
    {"BartWithoutPositions", "bart", R"({"max_position_embeddings": null})",
     "max_position_embeddings"},
    {"BartClassifier", "bart",
     R"({"architectures": ["BartForSequenceClassification"]})",
     "architectures: expected *ForConditionalGeneration, *MTModel or *Model, "
     "found BartForSequenceClassification"},
    {"MarianUnknownActivation", "marian",
     R"({"activation_function": "wiggle"})",
     "activation_function: activation 'wiggle' is not supported"},
    {"MarianDecoderWithoutVocabulary", "marian", R"({"decoder_vocab_size": 0})",
     "decoder_vocab_size"},
    {"M2M100PaddingBeyondTheLimit", "m2m_100", R"({"pad_token_id": 123456789})",
     "pad_token_id"},
    {"WhisperWithoutBands", "whisper", R"({"num_mel_bins": 0})",
     "num_mel_bins"},
    {"VanillaOtherPositions", "vanilla_prenorm",
     R"({"position_embedding": "learned"})",
     "position_embedding: expected sinusoidal_interleaved, found learned"},
    {"VanillaHeadsThatDoNotDivide", "vanilla_prenorm", R"({"nhead": 5})",
     "nhead: expected a divisor of the width 48, found 5"},
    {"T5NegativeEpsilon", "t5", R"({"layer_norm_epsilon": -1})", "epsilon"},
};

INSTANTIATE_TEST_SUITE_P(Families, RefusedSeq2Seq, testing::ValuesIn(kRefused),
                         [](const auto& test) { return test.param.name; });

TEST(T5Spec, ScalesWhereTheFieldOrATiedHeadSaysSo) {
  const float scale = Read("t5", "{}")->head.scale;
  EXPECT_NEAR(scale, 1.0 / std::sqrt(48.0), 1e-7);
  const auto scale_with = [](const char* patch) {
    return Read("t5", patch)->head.scale;
  };
  // Older files have only the tie.
  EXPECT_EQ(scale_with(R"({"scale_decoder_outputs": null})"), scale);
  EXPECT_EQ(scale_with(R"({"scale_decoder_outputs": null,
                           "tie_word_embeddings": false})"),
            1.0f);
  EXPECT_EQ(scale_with(R"({"scale_decoder_outputs": false})"), 1.0f);
  EXPECT_EQ(Read("mt5", "{}")->head.scale, 1.0f);
}

TEST(T5Spec, TheEncoderAlone) {
  const auto both = Read("t5", "{}");
  const auto spec = Read("t5", R"({"architectures": ["T5EncoderModel"]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(SpecToString(*spec), SpecToString(both->encoder.front()));
  const Family& family = FamilyOf("t5");
  EXPECT_EQ(&family.TensorsOf(*spec), &family.encoder_tensors);
  EXPECT_EQ(&family.TensorsOf(*both), &family.tensors);
}

TEST(BartSpec, MarianMayHaveAVocabularyForEachSide) {
  const auto spec = Read("marian", R"({"decoder_vocab_size": 77})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->vocab_size, 77u);
  EXPECT_EQ(spec->encoder.front().vocab_size, 320u);
}

TEST(BartSpec, M2M100CountsPositionsFromBehindThePadding) {
  EXPECT_EQ(Read("m2m_100", "{}")->positions.offset, 2u);
  EXPECT_EQ(Read("m2m_100", R"({"pad_token_id": 5})")->positions.offset, 6u);
}

Metadata GgufMetadata(const std::string& architecture) {
  Metadata metadata("t5.gguf");
  metadata.Insert("general.architecture", architecture);
  const std::pair<const char*, int64_t> sizes[] = {
      {"embedding_length", 48},     {"block_count", 3},
      {"decoder_block_count", 2},   {"attention.head_count", 4},
      {"attention.key_length", 14}, {"feed_forward_length", 100},
      {"vocab_size", 560}};
  for (const auto& [key, value] : sizes) {
    metadata.Insert(architecture + "." + key, value, MetadataType::kUint32);
  }
  return metadata;
}

// What GGUF metadata does not tell: the tensors do.
TEST(T5Spec, GgufTellsByTensorsWhichVersionItIs) {
  const Family& family = FamilyOf("t5");
  const auto read = [&](std::vector<std::string> names) {
    auto spec = family.from_metadata(GgufMetadata("t5"));
    EXPECT_TRUE(spec.ok()) << spec.status();
    family.from_tensors(
        [&](absl::string_view name) {
          return std::find(names.begin(), names.end(), name) != names.end();
        },
        &*spec);
    return *std::move(spec);
  };
  const ModelSpec first = read({});
  EXPECT_FALSE(first.layers[0].ffn.gated);
  EXPECT_EQ(first.layers[0].ffn.activation, Activation::kRelu);
  EXPECT_NEAR(first.head.scale, 1.0 / std::sqrt(48.0), 1e-7);
  EXPECT_EQ(read({"output.weight"}).head.scale, 1.0f);
  const ModelSpec second = read({"enc.blk.0.ffn_gate.weight"});
  EXPECT_TRUE(second.layers[1].ffn.gated);
  EXPECT_TRUE(second.encoder[0].layers[2].ffn.gated);
  EXPECT_EQ(second.layers[0].ffn.activation, Activation::kGeluTanh);
  EXPECT_EQ(second.head.scale, 1.0f);

  const auto folder = Read("t5", "{}");
  ModelSpec tied = first;
  tied.head.tied = true;  // what loading finds out
  EXPECT_EQ(SpecToString(tied), SpecToString(*folder));
}

TEST(T5Spec, GgufOfTheEncoderAlone) {
  const auto spec = FamilyOf("t5").from_metadata(GgufMetadata("t5encoder"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->encoder.empty());
  EXPECT_TRUE(spec->bidirectional());
  EXPECT_EQ(spec->layers.size(), 3u);
  EXPECT_EQ(spec->head.task, HeadTask::kNone);
}

}  // namespace
}  // namespace lanewise
