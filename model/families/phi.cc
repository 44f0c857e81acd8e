// Phi-1 and Phi-2: a parallel block behind one norm, RoPE on a part of each
// head, biases everywhere (Gunasekar et al., arXiv:2306.11644).
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

GptLike Keys() {
  GptLike keys{"phi"};
  keys.layers = "num_hidden_layers";
  keys.width = "hidden_size";
  keys.heads = "num_attention_heads";
  keys.ffn = "intermediate_size";
  keys.positions = "max_position_embeddings";
  keys.eps = "layer_norm_eps";
  keys.activation_key = "hidden_act";
  keys.tied = false;
  return keys;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, Keys()));
  const size_t heads = spec.layers[0].attention.heads;
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t kv_heads,
      GetUintOr(config, file, "num_key_value_heads", kMaxHeads, heads));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t rotary_dim,
      ReadRotaryDim(config, file, spec.layers[0].attention.head_dim,
                    "partial_rotary_factor", 0.5));
  LANEWISE_RETURN_IF_ERROR(
      AddRope(config, file, rotary_dim, RopePairing::kHalves, &spec));
  LANEWISE_ASSIGN_OR_RETURN(const bool qk_norm,
                            GetBoolOr(config, file, "qk_layernorm", false));
  if (qk_norm) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": qk_layernorm: expected false, found true"));
  }
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = true;
    layer.ffn_norms.input.reset();
    layer.attention.kv_heads = kv_heads;
  }
  spec.head.bias = true;
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(nlohmann::json config,
                            GgufAsConfig(metadata, "phi2", Keys()));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            FromConfig(config, metadata.file()));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.ropes[0].rotary_dim,
      metadata.GetUint("phi2.rope.dimension_count", kMaxHeadDim));
  return spec;
}

}  // namespace

const Family& PhiFamily() {
  static const Family* const family = new Family{
      "phi",
      {"phi"},
      {"phi2"},
      FromConfig,
      FromMetadata,
      {
          // clang-format off
          {"embed_tokens.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"final_layernorm.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"final_layernorm.bias", "output_norm.bias", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"lm_head.bias", "output.bias", Slot::kHead, true, Dim::kVocab, Dim::kOne},
          {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"layers.{}.self_attn.dense.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"layers.{}.self_attn.dense.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
