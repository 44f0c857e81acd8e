// GPT-NeoX and Pythia: a parallel block with a norm for each half, RoPE on a
// part of each head, query, key and value of each head together (Black et al.,
// arXiv:2204.06745).
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"gpt_neox"};
  keys.layers = "num_hidden_layers";
  keys.width = "hidden_size";
  keys.heads = "num_attention_heads";
  keys.ffn = "intermediate_size";
  keys.positions = "max_position_embeddings";
  keys.eps = "layer_norm_eps";
  keys.activation_key = "hidden_act";
  keys.activation = "gelu";
  keys.tied = false;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t rotary_dim,
      ReadRotaryDim(config, file, spec.layers[0].attention.head_dim,
                    "rotary_pct", 0.25));
  LANEWISE_RETURN_IF_ERROR(
      AddRope(config, file, rotary_dim, RopePairing::kHalves, &spec));
  if (FindJson(config, "rope_parameters") == nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(
        spec.ropes[0].theta,
        GetFloatOr(config, file, "rotary_emb_base", spec.ropes[0].theta));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const bool parallel,
      GetBoolOr(config, file, "use_parallel_residual", true));
  LANEWISE_ASSIGN_OR_RETURN(const bool bias,
                            GetBoolOr(config, file, "attention_bias", true));
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = parallel;
    layer.attention.qkv_bias = layer.attention.output_bias = bias;
  }
  return spec;
}

}  // namespace

const Family& GptNeoxFamily() {
  static const Family* const family = new Family{
      "gpt_neox",
      {"gpt_neox"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embed_in.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"final_layer_norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"final_layer_norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"embed_out.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"layers.{}.input_layernorm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.input_layernorm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.attention.query_key_value.weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups},
          {"layers.{}.attention.query_key_value.bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne, Presence::kRequired, TensorLayout::kKvGroups},
          {"layers.{}.attention.dense.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"layers.{}.attention.dense.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.attention.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"layers.{}.attention.masked_bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"layers.{}.attention.rotary_emb.inv_freq", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"layers.{}.post_attention_layernorm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.post_attention_layernorm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp.dense_h_to_4h.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.mlp.dense_h_to_4h.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"layers.{}.mlp.dense_4h_to_h.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.mlp.dense_4h_to_h.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"gpt_neox.", ""}};
  return *family;
}

}  // namespace lanewise
