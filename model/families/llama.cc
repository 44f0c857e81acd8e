// Llama: RMSNorm before each sublayer, RoPE, grouped-query attention, gated
// FFN (Touvron et al., arXiv:2302.13971).
#include "model/families/llama.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

struct Sizes {
  size_t layers, width, heads, kv_heads, head_dim, value_dim, ffn;
  float eps;
};

ModelSpec MakeSpec(const Sizes& sizes, const RopeSpec& rope) {
  ModelSpec spec;
  spec.family = "llama";
  spec.width = sizes.width;
  spec.ropes = {rope};
  const NormSpec norm{NormKind::kRmsNorm, sizes.eps};
  LayerSpec layer;
  layer.attention_norms.input = norm;
  layer.attention.heads = sizes.heads;
  layer.attention.kv_heads = sizes.kv_heads;
  layer.attention.head_dim = sizes.head_dim;
  layer.attention.value_dim = sizes.value_dim;
  layer.attention.scale = DefaultScale(sizes.head_dim);
  layer.attention.rope = 0;
  layer.ffn_norms.input = norm;
  layer.ffn.activation = Activation::kSilu;
  layer.ffn.gated = true;
  layer.ffn.width = sizes.ffn;
  spec.layers.assign(sizes.layers, layer);
  spec.final_norm = norm;
  return spec;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.layers, GetUint(config, file, "num_hidden_layers", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(sizes.width,
                            GetUint(config, file, "hidden_size", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.heads, GetUint(config, file, "num_attention_heads", kMaxHeads));
  if (sizes.heads == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": num_attention_heads: expected at least 1, found 0"));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.kv_heads,
      GetUintOr(config, file, "num_key_value_heads", kMaxHeads, sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(sizes.head_dim,
                            GetUintOr(config, file, "head_dim", kMaxHeadDim,
                                      sizes.width / sizes.heads));
  sizes.value_dim = sizes.head_dim;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn, GetUint(config, file, "intermediate_size", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(sizes.eps,
                            GetFloatOr(config, file, "rms_norm_eps", 1e-6));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t positions,
      GetUintOr(config, file, "max_position_embeddings", kMaxPositions, 2048));
  LANEWISE_ASSIGN_OR_RETURN(const RopeSpec rope,
                            ReadRope(config, file, sizes.head_dim, positions));
  ModelSpec spec = MakeSpec(sizes, rope);
  spec.max_positions = positions;
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.tied, GetBoolOr(config, file, "tie_word_embeddings", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool attention_bias,
                            GetBoolOr(config, file, "attention_bias", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool mlp_bias,
                            GetBoolOr(config, file, "mlp_bias", false));
  LANEWISE_ASSIGN_OR_RETURN(const Activation activation,
                            ReadActivation(config, file, "hidden_act", "silu"));
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.output_bias = attention_bias;
    layer.ffn.bias = mlp_bias;
    layer.ffn.activation = activation;
  }
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  const auto key = [](absl::string_view name) {
    return absl::StrCat("llama.", name);
  };
  LANEWISE_ASSIGN_OR_RETURN(
      const uint64_t experts,
      metadata.GetUintOr(key("expert_count"), kMaxWidth, 0));
  if (experts != 0) {
    return absl::UnimplementedError(absl::StrCat(
        metadata.file(), ": ", key("expert_count"), ": expected 0, found ",
        experts, ": mixtures of experts are not supported"));
  }
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(sizes.layers,
                            metadata.GetUint(key("block_count"), kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.width, metadata.GetUint(key("embedding_length"), kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.heads, metadata.GetUint(key("attention.head_count"), kMaxHeads));
  if (sizes.heads == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(metadata.file(), ": ", key("attention.head_count"),
                     ": expected at least 1, found 0"));
  }
  LANEWISE_ASSIGN_OR_RETURN(sizes.kv_heads,
                            metadata.GetUintOr(key("attention.head_count_kv"),
                                               kMaxHeads, sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.head_dim,
      metadata.GetUintOr(key("attention.key_length"), kMaxHeadDim,
                         sizes.width / sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(sizes.value_dim,
                            metadata.GetUintOr(key("attention.value_length"),
                                               kMaxHeadDim, sizes.head_dim));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn, metadata.GetUint(key("feed_forward_length"), kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.eps, metadata.GetFloat(key("attention.layer_norm_rms_epsilon")));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t positions,
      metadata.GetUint(key("context_length"), kMaxPositions));
  LANEWISE_ASSIGN_OR_RETURN(const size_t rotary_dim,
                            metadata.GetUintOr(key("rope.dimension_count"),
                                               kMaxHeadDim, sizes.head_dim));
  LANEWISE_ASSIGN_OR_RETURN(
      RopeSpec rope, ReadGgufRope(metadata, "llama", rotary_dim, positions));
  // The file's rows are in rotated pairs; with whole heads they are put back
  // to halves at load, so that a model gives the bits of its folder.
  rope.pairing = rotary_dim == sizes.head_dim ? RopePairing::kHalves
                                              : RopePairing::kInterleaved;
  ModelSpec spec = MakeSpec(sizes, rope);
  spec.max_positions = positions;
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            ReadGgufVocabSize(metadata, "llama"));
  return spec;
}

}  // namespace

const Family& LlamaFamily() {
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  constexpr auto kPairs = TensorLayout::kRotaryPairs;
  static const Family* const family = new Family{
      "llama",
      {"llama"},
      {"llama"},
      FromConfig,
      FromMetadata,
      {
          // clang-format off
          {"embed_tokens.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"norm.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth, kOptional},
          {"", "rope_freqs.weight", Slot::kRopeFactors, false, Dim::kHalfRotary, Dim::kOne, kOptional},
          {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth, Presence::kRequired, kPlain, kPairs},
          {"layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth, Presence::kRequired, kPlain, kPairs},
          {"layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", Slot::kQuery, true, Dim::kQuery, Dim::kOne, kOptional, kPlain, kPairs},
          {"layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", Slot::kKey, true, Dim::kKey, Dim::kOne, kOptional, kPlain, kPairs},
          {"layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias", Slot::kValue, true, Dim::kValue, Dim::kOne, kOptional},
          {"layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne, kOptional},
          {"layers.{}.self_attn.rotary_emb.inv_freq", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", Slot::kGate, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias", Slot::kGate, true, Dim::kFfn, Dim::kOne, kOptional},
          {"layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne, kOptional},
          {"layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne, kOptional},
          // clang-format on
      },
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
