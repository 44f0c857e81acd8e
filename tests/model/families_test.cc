// Readers of config.json: the spec of each family, and what contradictory
// configurations get.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/families/family.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// {case: {"newer": config, "older": config}}
const json& Configs() {
  static const json* const configs =
      new json(json::parse(ReadFile("tests/model/families/configs.json")));
  return *configs;
}

absl::StatusOr<ModelSpec> Read(const json& config) {
  for (const Family* family : Families()) {
    for (const absl::string_view type : family->model_types) {
      if (config.value("model_type", "") == type) {
        return family->from_config(config, "config.json");
      }
    }
  }
  return absl::NotFoundError("no family of this model_type");
}

class SpecSnapshot : public testing::TestWithParam<std::string> {};

TEST_P(SpecSnapshot, EqualsTheRecordedOne) {
  const json& config = Configs()[GetParam()];
  const auto spec = Read(config["newer"]);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string text = SpecToString(*spec);
  EXPECT_EQ(text, ReadFile("tests/model/families/" + GetParam() + ".spec"));
  if (!config.contains("older")) return;
  const auto older = Read(config["older"]);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(SpecToString(*older), text);
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& [name, value] : Configs().items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, SpecSnapshot, testing::ValuesIn(CaseNames()),
                         [](const auto& test) { return test.param; });

TEST(Families, EachHasASnapshot) {
  for (const Family* family : Families()) {
    for (const absl::string_view type : family->model_types) {
      bool found = false;
      for (const auto& [name, value] : Configs().items()) {
        found = found || value["newer"]["model_type"] == std::string(type);
      }
      EXPECT_TRUE(found) << type;
    }
  }
}

TEST(Families, NoNameIsTakenTwice) {
  std::vector<absl::string_view> types, architectures;
  for (const Family* family : Families()) {
    for (const auto type : family->model_types) types.push_back(type);
    for (const auto name : family->gguf_architectures) {
      architectures.push_back(name);
    }
    EXPECT_EQ(family->from_metadata == nullptr,
              family->gguf_architectures.empty())
        << family->name;
  }
  std::sort(types.begin(), types.end());
  EXPECT_EQ(std::unique(types.begin(), types.end()), types.end());
  std::sort(architectures.begin(), architectures.end());
  EXPECT_EQ(std::unique(architectures.begin(), architectures.end()),
            architectures.end());
}

// Published files of DeBERTa write the terms in one string.
TEST(Families, TermsOfRelativePositionsInOneString) {
  json config = Configs()["deberta_v2"]["newer"];
  const auto expected = Read(config);
  ASSERT_TRUE(expected.ok()) << expected.status();
  config["pos_att_type"] = "p2c|c2p";
  const auto found = Read(config);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(SpecToString(*found), SpecToString(*expected));
  config["pos_att_type"] = "c2p";
  const auto one = Read(config);
  ASSERT_TRUE(one.ok()) << one.status();
  const AttentionSpec& attention = one->layers.front().attention;
  EXPECT_FALSE(attention.disentangled->relative_queries);
  EXPECT_FLOAT_EQ(attention.scale, 1.0f / std::sqrt(12.0f * 2.0f));
}

// A configuration that must be refused, and what the message says.
struct Refused {
  const char* name;
  const char* base;
  const char* patch;  // merged into the configuration (RFC 7386)
  const char* message;
};

class RefusedConfig : public testing::TestWithParam<Refused> {};

TEST_P(RefusedConfig, SaysWhy) {
  json config = Configs()[GetParam().base]["newer"];
  // A merge patch takes null away; files hold null where a size is missing.
  config.merge_patch(json::parse(GetParam().patch));
  const auto spec = Read(config);
  ASSERT_FALSE(spec.ok());
  const std::string message(spec.status().message());
  EXPECT_THAT(message, HasSubstr("config.json: "));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
}

constexpr Refused kRefused[] = {
    {"UnknownActivation", "phi", R"({"hidden_act": "wiggle"})",
     "hidden_act: activation 'wiggle' is not supported"},
    {"UnknownRopeType", "qwen2",
     R"({"rope_parameters": {"rope_type": "spiral"}})",
     "RoPE scaling 'spiral' is not supported"},
    {"WindowWithoutSize", "gemma2", R"({"sliding_window": null})",
     "sliding_window"},
    {"WindowOfZero", "mistral", R"({"sliding_window": 0})", "sliding_window"},
    {"UnknownLayerType", "qwen2", R"({"layer_types": ["full_attention",
      "linear_attention", "full_attention"]})",
     "layer_types: expected full_attention or sliding_attention, found "
     "\"linear_attention\""},
    {"TooFewLayerTypes", "gemma3", R"({"layer_types": ["full_attention"]})",
     "layer_types: expected one of each of the 4 layers, found 1"},
    {"TooFewNoRopeLayers", "smollm3", R"({"no_rope_layers": [1, 0]})",
     "no_rope_layers: expected one number for each of the 4 layers, found 2"},
    {"NoRopeLayerOfTwo", "smollm3", R"({"no_rope_layers": [1, 0, 2, 1]})",
     "no_rope_layers"},
    {"UnknownAttentionType", "gpt_neo",
     R"({"attention_types": [[["global", "sparse"], 2]]})",
     "attention_types: expected global or local, found \"sparse\""},
    {"AttentionTypesWithoutCount", "gpt_neo",
     R"({"attention_types": [["global", "local"]]})",
     "attention_types: expected pairs of a pattern and a number"},
    {"TooManyAttentionTypes", "gpt_neo",
     R"({"attention_types": [[["global"], 4000]]})",
     "attention_types: expected the types of 4 layers"},
    {"LongropeFactorsOfAnotherSize", "phi3_longrope",
     R"({"rope_parameters": {"short_factor": [1.0, 2.0]}})",
     "short_factor: expected 6 numbers, half the rotary size, found 2"},
    {"LongropeFactorOfZero", "phi3_longrope",
     R"({"rope_parameters": {"long_factor": [1, 2, 3, 0, 5, 6]}})",
     "long_factor: expected positive numbers, found 0"},
    {"LongropeWithoutFactors", "phi3_longrope",
     R"({"rope_parameters": {"long_factor": null}})", "long_factor"},
    {"RotaryFractionAboveOne", "glm",
     R"({"rope_parameters": {"partial_rotary_factor": 1.5}})",
     "partial_rotary_factor: expected a number above 0 and up to 1, found 1.5"},
    {"NegativeClip", "olmo", R"({"clip_qkv": -1})", "clip_qkv"},
    {"QueryScalarOfZero", "gemma2", R"({"query_pre_attn_scalar": 0})",
     "query_pre_attn_scalar"},
    {"HeadsThatDoNotDivide", "opt", R"({"num_attention_heads": 7})",
     "num_attention_heads: expected a divisor of the width 48, found 7"},
    {"ResidualAfterNorm", "bloom",
     R"({"apply_residual_connection_post_layernorm": true})",
     "apply_residual_connection_post_layernorm: expected false, found true"},
    {"QkLayernorm", "phi", R"({"qk_layernorm": true})", "qk_layernorm"},
    {"NormsWithoutWeights", "opt",
     R"({"layer_norm_elementwise_affine": false})",
     "layer_norm_elementwise_affine"},
    {"OtherSwigluAlpha", "gpt_oss", R"({"swiglu_alpha": 2.0})",
     "swiglu_alpha: expected 1.702, found 2"},
    {"SwigluLimitOfZero", "gpt_oss", R"({"swiglu_limit": 0})", "swiglu_limit"},
    {"NoExperts", "mixtral", R"({"num_local_experts": 0})",
     "num_local_experts"},
    {"ExpertsBeyondTheLimit", "qwen3_moe", R"({"num_local_experts": 100000})",
     "num_local_experts"},
    {"SparseStepOfZero", "qwen2_moe", R"({"decoder_sparse_step": 0})",
     "decoder_sparse_step"},
    {"ExpertsWithoutSize", "qwen2_moe", R"({"moe_intermediate_size": null})",
     "moe_intermediate_size"},
    {"DenseLayersThatAreNoNumbers", "qwen2_moe",
     R"({"mlp_only_layers": ["one"]})", "mlp_only_layers"},
    {"RopeOfOneKindOnly", "gemma3",
     R"({"rope_parameters": {"sliding_attention": null}})",
     "sliding_attention"},
    {"UnknownHeadClass", "bert",
     R"({"architectures": ["BertForNextSentencePrediction"]})",
     "architectures: expected one of"},
    {"HeadClassOfAnotherType", "bert",
     R"({"architectures": "BertForSequenceClassification"})",
     "architectures: expected an array"},
    {"RelativeKeys", "bert",
     R"({"position_embedding_type": "relative_key_query"})",
     "position_embedding_type: expected absolute, found relative_key_query"},
    {"BertAsDecoder", "bert", R"({"is_decoder": true})",
     "is_decoder: expected false (an encoder), found true"},
    {"LabelWithoutName", "bert_seqcls", R"({"id2label": {"1": null}})",
     "id2label: expected a name for each of 2 labels, found none for 1"},
    {"NoLabels", "bert_seqcls", R"({"num_labels": 0})", "num_labels"},
    {"PositionsBehindPadding", "roberta_mlm",
     R"({"max_position_embeddings": 2})",
     "max_position_embeddings: expected more than 2, found 2"},
    {"PaddingThatIsNoId", "roberta_mlm", R"({"pad_token_id": -1})",
     "pad_token_id"},
    {"HeadsUnderAnotherName", "distilbert_mlm", R"({"n_heads": 5})",
     "n_heads: expected a divisor of the width 48, found 5"},
    {"LayersInsideALayer", "albert", R"({"inner_group_num": 2})",
     "inner_group_num: expected 1, found 2"},
    {"MoreGroupsThanLayers", "albert", R"({"num_hidden_groups": 4})",
     "num_hidden_groups: expected at most the 3 layers, found 4"},
    {"NoRelativeBuckets", "mpnet", R"({"relative_attention_num_buckets": 0})",
     "relative_attention_num_buckets"},
    {"UnknownPooling", "modernbert_seqcls", R"({"classifier_pooling": "max"})",
     "classifier_pooling: expected cls or mean, found max"},
    {"EncoderRopeOfOneKindOnly", "modernbert_mlm",
     R"({"rope_parameters": {"sliding_attention": null}})",
     "sliding_attention"},
    {"NoGlobalLayers", "modernbert_mlm", R"({"global_attn_every_n_layers": 0})",
     "global_attn_every_n_layers"},
    {"NormsBefore", "nomic_bert_published", R"({"prenorm": true})",
     "prenorm: expected false, found true"},
    {"ExpertsOfAnEncoder", "nomic_bert_published",
     R"({"moe_every_n_layers": 2})", "moe_every_n_layers: expected 0, found 2"},
    {"FeedForwardWithoutGate", "nomic_bert_published",
     R"({"activation_function": "gelu"})",
     "activation_function: expected swiglu, found gelu"},
    {"ScalingBelowOne", "nomic_bert_published",
     R"({"rotary_scaling_factor": 0.5})",
     "rotary_scaling_factor: expected at least 1, found 0.5"},
    {"HeadOfNomicBert", "nomic_bert",
     R"({"architectures": ["NomicBertForMaskedLM"]})",
     "architectures: expected NomicBertModel"},
    {"UnknownRelativeTerm", "deberta_v2", R"({"pos_att_type": ["p2p"]})",
     "pos_att_type: expected c2p or p2c, found p2p"},
    {"RelativeTermThatIsNoName", "deberta_v2", R"({"pos_att_type": [3]})",
     "pos_att_type: expected c2p or p2c, found 3"},
    {"UnknownRelativeNorm", "deberta_v2", R"({"norm_rel_ebd": "batch_norm"})",
     "norm_rel_ebd: expected none or layer_norm, found batch_norm"},
    {"EmbeddingOfAnotherSize", "deberta_v2", R"({"embedding_size": 20})",
     "embedding_size: expected the hidden size 48, found 20"},
    {"BucketsBeyondTheLimit", "deberta_v2", R"({"position_buckets": 5000})",
     "position_buckets"},
    {"KernelOfEvenSize", "deberta_v2_conv", R"({"conv_kernel_size": 4})",
     "expected an odd size and one group, found 4 and 1"},
    {"GroupsOfAConvolution", "deberta_v2_conv", R"({"conv_groups": 2})",
     "expected an odd size and one group, found 3 and 2"},
    {"HeadOfVit", "vit", R"({"architectures": ["ViTForTokenClassification"]})",
     "architectures: expected ViTModel or ViTForImageClassification"},
    {"PatchLargerThanItsImage", "vit", R"({"patch_size": 31})", "patch_size"},
    {"UnknownPoolerActivation", "vit", R"({"pooler_act": "wiggle"})",
     "pooler_act: activation 'wiggle' is not supported"},
};

INSTANTIATE_TEST_SUITE_P(Families, RefusedConfig, testing::ValuesIn(kRefused),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lanewise
