// Falcon: parallel blocks, few key and value heads, each in one tensor with its
// query heads; RoPE, or ALiBi in the RW models (Almazrouei et al.,
// arXiv:2311.16867).
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// One norm for both halves of a parallel block or one each; a serial block has
// two as ever.
absl::Status ReadBlocks(const nlohmann::json& config, absl::string_view file,
                        bool grouped, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(const bool parallel_attention,
                            GetBoolOr(config, file, "parallel_attn", true));
  const bool parallel = parallel_attention || grouped;
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t norms, GetUintOr(config, file, "num_ln_in_parallel_attn", 2,
                                    grouped ? 2 : 1, 1));
  for (LayerSpec& layer : spec->layers) {
    layer.parallel = parallel;
    if (parallel && norms == 1) layer.ffn_norms.input.reset();
  }
  return absl::OkStatus();
}

absl::Status ReadKvHeads(const nlohmann::json& config, absl::string_view file,
                         bool grouped, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(const bool multi_query,
                            GetBoolOr(config, file, "multi_query", true));
  size_t kv_heads = spec->layers[0].attention.heads;
  if (grouped) {
    LANEWISE_ASSIGN_OR_RETURN(
        kv_heads, GetUintOr(config, file, "num_kv_heads", kMaxHeads, kv_heads));
  } else if (multi_query) {
    kv_heads = 1;
  }
  for (LayerSpec& layer : spec->layers) layer.attention.kv_heads = kv_heads;
  return absl::OkStatus();
}

GptLike Keys() {
  GptLike keys{"falcon"};
  keys.layers = "num_hidden_layers|n_layer";
  keys.width = "hidden_size";
  keys.heads = "num_attention_heads|n_head";
  keys.ffn = "ffn_hidden_size";
  keys.positions = "max_position_embeddings";
  keys.default_positions = 2048;
  keys.activation_key = "activation";
  keys.activation = "gelu";
  return keys;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, Keys()));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool grouped,
      GetBoolOr(config, file, "new_decoder_architecture", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool alibi,
                            GetBoolOr(config, file, "alibi", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool bias,
                            GetBoolOr(config, file, "bias", false));
  LANEWISE_RETURN_IF_ERROR(ReadBlocks(config, file, grouped, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadKvHeads(config, file, grouped, &spec));
  const size_t head_dim = spec.layers[0].attention.head_dim;
  if (!alibi) {
    LANEWISE_RETURN_IF_ERROR(
        AddRope(config, file, head_dim, RopePairing::kHalves, &spec));
  }
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    attention.qkv_bias = attention.output_bias = layer.ffn.bias = bias;
    // Slopes are added before the scores are scaled.
    if (alibi) {
      attention.slopes = AlibiSlopes(attention.heads, attention.scale);
    }
  }
  return spec;
}

// Files hold the 7B architecture (one key and value head, one norm) or the 40B
// one (several, two norms).
absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(nlohmann::json config,
                            GgufAsConfig(metadata, "falcon", Keys()));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t kv_heads,
      metadata.GetUintOr("falcon.attention.head_count_kv", kMaxHeads, 1));
  config["num_kv_heads"] = kv_heads;
  config["new_decoder_architecture"] = kv_heads > 1;
  return FromConfig(config, metadata.file());
}

}  // namespace

const Family& FalconFamily() {
  static const Family* const family = new Family{
      "falcon",
      {"falcon"},
      {"falcon"},
      FromConfig,
      FromMetadata,
      {
          // clang-format off
          {"word_embeddings.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"ln_f.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"ln_f.bias", "output_norm.bias", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"h.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.input_layernorm.bias", "blk.{}.attn_norm.bias", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_attn.weight", "blk.{}.attn_norm_2.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_attn.bias", "blk.{}.attn_norm_2.bias", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.post_attention_layernorm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.post_attention_layernorm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_mlp.weight", "blk.{}.attn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_mlp.bias", "blk.{}.attn_norm.bias", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.self_attention.query_key_value.weight", "blk.{}.attn_qkv.weight", Slot::kQkv, false, Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.self_attention.query_key_value.bias", "blk.{}.attn_qkv.bias", Slot::kQkv, true, Dim::kQkv, Dim::kOne, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.self_attention.dense.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"h.{}.self_attention.dense.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"h.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"h.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"h.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"h.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"transformer.", ""}};
  return *family;
}

}  // namespace lanewise
