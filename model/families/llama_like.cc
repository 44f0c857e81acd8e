#include "model/families/llama_like.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/rope_config.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr auto kOptional = Presence::kOptional;

struct Sizes {
  size_t layers, heads, kv_heads, head_dim, value_dim, ffn;
  float eps;
};

void SetLayers(const Sizes& sizes, const LlamaLike& defaults, ModelSpec* spec) {
  NormSpec norm{defaults.norm, sizes.eps};
  norm.bias = defaults.norm_bias;
  LayerSpec layer;
  layer.attention_norms.input = layer.ffn_norms.input = norm;
  AttentionSpec& attention = layer.attention;
  attention.heads = sizes.heads;
  attention.kv_heads = sizes.kv_heads;
  attention.head_dim = sizes.head_dim;
  attention.value_dim = sizes.value_dim;
  attention.scale = DefaultScale(sizes.head_dim);
  attention.rope = 0;
  layer.ffn.gated = defaults.gated;
  layer.ffn.width = sizes.ffn;
  spec->family = std::string(defaults.family);
  spec->layers.assign(sizes.layers, layer);
  spec->final_norm = norm;
}

absl::StatusOr<Sizes> ReadSizes(const nlohmann::json& config,
                                absl::string_view file,
                                const LlamaLike& defaults, size_t width) {
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.layers, GetUint(config, file, "num_hidden_layers", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.heads, GetUint(config, file, "num_attention_heads", kMaxHeads));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.kv_heads,
      GetUintOr(config, file, "num_key_value_heads", kMaxHeads, sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.head_dim,
      GetUintOr(config, file, "head_dim", kMaxHeadDim, width / sizes.heads));
  sizes.value_dim = sizes.head_dim;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn, GetUint(config, file, "intermediate_size", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.eps, GetFloatOr(config, file, defaults.eps_key, defaults.eps));
  return sizes;
}

}  // namespace

absl::StatusOr<ModelSpec> ReadLlamaLike(const nlohmann::json& config,
                                        absl::string_view file,
                                        const LlamaLike& defaults) {
  ModelSpec spec;
  LANEWISE_ASSIGN_OR_RETURN(spec.width,
                            GetUint(config, file, "hidden_size", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(const Sizes sizes,
                            ReadSizes(config, file, defaults, spec.width));
  SetLayers(sizes, defaults, &spec);
  LANEWISE_ASSIGN_OR_RETURN(
      spec.max_positions,
      GetUintOr(config, file, "max_position_embeddings", kMaxPositions, 2048));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t rotary_dim,
      ReadRotaryDim(config, file, sizes.head_dim, defaults.rotary_key,
                    defaults.rotary));
  LANEWISE_ASSIGN_OR_RETURN(
      RopeSpec rope, ReadRope(config, file, rotary_dim, spec.max_positions));
  rope.pairing = defaults.pairing;
  // Dynamic scaling goes on with any length.
  if (rope.scaling == RopeSpec::Scaling::kDynamic) {
    spec.max_positions = kMaxPositions;
  }
  spec.ropes = {rope};
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.tied,
      GetBoolOr(config, file, "tie_word_embeddings", defaults.tied));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool attention_bias,
      GetBoolOr(config, file, "attention_bias", defaults.attention_bias));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool mlp_bias,
      GetBoolOr(config, file, "mlp_bias", defaults.mlp_bias));
  LANEWISE_ASSIGN_OR_RETURN(
      const Activation activation,
      ReadActivation(config, file, defaults.activation_key,
                     defaults.activation));
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.attention.qkv_bias = layer.attention.output_bias = attention_bias;
    layer.ffn.bias = mlp_bias;
    layer.ffn.activation = activation;
  });
  return spec;
}

absl::StatusOr<ModelSpec> ReadGgufLlamaLike(const Metadata& metadata,
                                            const LlamaLike& defaults) {
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(defaults.architecture, ".", name);
  };
  ModelSpec spec;
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.layers, metadata.GetUint(key("block_count"), kMaxLayers, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.width, metadata.GetUint(key("embedding_length"), kMaxWidth, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.heads, metadata.GetUint(key("attention.head_count"), kMaxHeads, 1));
  LANEWISE_ASSIGN_OR_RETURN(sizes.kv_heads,
                            metadata.GetUintOr(key("attention.head_count_kv"),
                                               kMaxHeads, sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.head_dim,
      metadata.GetUintOr(key("attention.key_length"), kMaxHeadDim,
                         spec.width / sizes.heads));
  LANEWISE_ASSIGN_OR_RETURN(sizes.value_dim,
                            metadata.GetUintOr(key("attention.value_length"),
                                               kMaxHeadDim, sizes.head_dim));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn, metadata.GetUint(key("feed_forward_length"), kMaxWidth, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.eps, metadata.GetFloat(key(defaults.norm == NormKind::kRmsNorm
                                           ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon")));
  SetLayers(sizes, defaults, &spec);
  LANEWISE_ASSIGN_OR_RETURN(
      spec.max_positions,
      metadata.GetUint(key("context_length"), kMaxPositions, 1));
  LANEWISE_ASSIGN_OR_RETURN(const size_t rotary_dim,
                            metadata.GetUintOr(key("rope.dimension_count"),
                                               kMaxHeadDim, sizes.head_dim));
  LANEWISE_ASSIGN_OR_RETURN(const RopeSpec rope,
                            ReadGgufRope(metadata, defaults.architecture,
                                         rotary_dim, spec.max_positions));
  spec.ropes = {rope};
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            ReadGgufVocabSize(metadata, defaults.architecture));
  nlohmann::json name = {{"name", defaults.activation}};
  LANEWISE_ASSIGN_OR_RETURN(
      const Activation activation,
      ReadActivation(name, metadata.file(), "name", defaults.activation));
  ForLayers(&spec,
            [&](LayerSpec& layer) { layer.ffn.activation = activation; });
  return spec;
}

std::vector<TensorRule> Join(
    std::initializer_list<std::vector<TensorRule>> tables) {
  std::vector<TensorRule> all;
  for (const std::vector<TensorRule>& table : tables) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

// clang-format off
std::vector<TensorRule> EmbeddingTensors() {
  return {
      {"embed_tokens.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"norm.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"norm.bias", "output_norm.bias", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
      {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
      {"", "rope_freqs.weight", Slot::kRopeFactors, false, Dim::kHalfRotary, Dim::kOne, kOptional},
  };
}

std::vector<TensorRule> SeparateQkvTensors(TensorLayout gguf_qk) {
  return {
      {"layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth, Presence::kRequired, TensorLayout::kPlain, gguf_qk},
      {"layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth, Presence::kRequired, TensorLayout::kPlain, gguf_qk},
      {"layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", Slot::kQuery, true, Dim::kQuery, Dim::kOne, Presence::kRequired, TensorLayout::kPlain, gguf_qk},
      {"layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", Slot::kKey, true, Dim::kKey, Dim::kOne, Presence::kRequired, TensorLayout::kPlain, gguf_qk},
      {"layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias", Slot::kValue, true, Dim::kValue, Dim::kOne},
  };
}

std::vector<TensorRule> QkNormTensors() {
  return {
      {"layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", Slot::kQueryNorm, false, Dim::kHeadDim, Dim::kOne},
      {"layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", Slot::kKeyNorm, false, Dim::kHeadDim, Dim::kOne},
  };
}

std::vector<TensorRule> AttentionOutputTensors() {
  return {
      {"layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"layers.{}.self_attn.rotary_emb.inv_freq", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
  };
}

std::vector<TensorRule> InputNormTensors() {
  return {
      {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
      {"layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
  };
}

std::vector<TensorRule> GatedFfnTensors() {
  return {
      {"layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", Slot::kGate, false, Dim::kFfn, Dim::kWidth},
      {"layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias", Slot::kGate, true, Dim::kFfn, Dim::kOne},
      {"layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
  };
}

std::vector<TensorRule> StackedExpertTensors() {
  return {
      {"", "blk.{}.ffn_gate_inp.weight", Slot::kRouter, false, Dim::kExperts, Dim::kWidth},
      {"", "blk.{}.ffn_gate_exps.weight", Slot::kExpertGate, false, Dim::kFfn, Dim::kWidth},
      {"", "blk.{}.ffn_up_exps.weight", Slot::kExpertUp, false, Dim::kFfn, Dim::kWidth},
      {"", "blk.{}.ffn_down_exps.weight", Slot::kExpertDown, false, Dim::kWidth, Dim::kFfn},
  };
}
// clang-format on

std::vector<TensorRule> AllLlamaTensors(TensorLayout gguf_qk) {
  return Join({EmbeddingTensors(), InputNormTensors(),
               SeparateQkvTensors(gguf_qk), AttentionOutputTensors(),
               GatedFfnTensors()});
}

}  // namespace lanewise
