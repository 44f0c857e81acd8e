// GPT-2: LayerNorm before each sublayer, learned positions, fused query, key
// and value, biases everywhere, tied head (Radford et al., 2019).
#include "model/families/gpt2.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

struct Sizes {
  size_t layers, width, heads, ffn, positions;
  float eps;
};

absl::StatusOr<ModelSpec> MakeSpec(const Sizes& sizes, absl::string_view file) {
  if (sizes.heads == 0 || sizes.width % sizes.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": heads: expected a divisor of the width ",
                     sizes.width, ", found ", sizes.heads));
  }
  ModelSpec spec;
  spec.family = "gpt2";
  spec.width = sizes.width;
  spec.max_positions = sizes.positions;
  spec.positions.kind = PositionSpec::Kind::kLearned;
  NormSpec norm{NormKind::kLayerNorm, sizes.eps};
  norm.bias = true;
  LayerSpec layer;
  layer.attention_norms.input = norm;
  layer.attention.heads = layer.attention.kv_heads = sizes.heads;
  layer.attention.head_dim = layer.attention.value_dim =
      sizes.width / sizes.heads;
  layer.attention.scale = DefaultScale(layer.attention.head_dim);
  layer.attention.qkv_bias = layer.attention.output_bias = true;
  layer.ffn_norms.input = norm;
  layer.ffn.activation = Activation::kGeluTanh;
  layer.ffn.width = sizes.ffn;
  layer.ffn.bias = true;
  spec.layers.assign(sizes.layers, layer);
  spec.final_norm = norm;
  spec.head.tied = true;
  return spec;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(sizes.layers,
                            GetUint(config, file, "n_layer", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(sizes.width,
                            GetUint(config, file, "n_embd", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(sizes.heads,
                            GetUint(config, file, "n_head", kMaxHeads));
  LANEWISE_ASSIGN_OR_RETURN(sizes.ffn, GetUintOr(config, file, "n_inner",
                                                 kMaxWidth, 4 * sizes.width));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.positions, GetUint(config, file, "n_positions", kMaxPositions));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.eps, GetFloatOr(config, file, "layer_norm_epsilon", 1e-5));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, MakeSpec(sizes, file));
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.tied, GetBoolOr(config, file, "tie_word_embeddings", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const Activation activation,
      ReadActivation(config, file, "activation_function", "gelu_new"));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool scaled, GetBoolOr(config, file, "scale_attn_weights", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool by_layer,
      GetBoolOr(config, file, "scale_attn_by_inverse_layer_idx", false));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].ffn.activation = activation;
    float& scale = spec.layers[i].attention.scale;
    if (!scaled) scale = 1.0f;
    if (by_layer) scale /= static_cast<float>(i + 1);
  }
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  const auto key = [](absl::string_view name) {
    return absl::StrCat("gpt2.", name);
  };
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(sizes.layers,
                            metadata.GetUint(key("block_count"), kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.width, metadata.GetUint(key("embedding_length"), kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.heads, metadata.GetUint(key("attention.head_count"), kMaxHeads));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn, metadata.GetUint(key("feed_forward_length"), kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.positions, metadata.GetUint(key("context_length"), kMaxPositions));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.eps, metadata.GetFloat(key("attention.layer_norm_epsilon")));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, MakeSpec(sizes, metadata.file()));
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            ReadGgufVocabSize(metadata, "gpt2"));
  return spec;
}

}  // namespace

const Family& Gpt2Family() {
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kTransposed = TensorLayout::kTransposed;
  static const Family* const family = new Family{
      "gpt2",
      {"gpt2"},
      {"gpt2"},
      FromConfig,
      FromMetadata,
      {
          // clang-format off
          {"wte.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"wpe.weight", "position_embd.weight", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"ln_f.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"ln_f.bias", "output_norm.bias", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth, kOptional},
          {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_1.bias", "blk.{}.attn_norm.bias", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", Slot::kQkv, false, Dim::kQkv, Dim::kWidth, kRequired, kTransposed},
          {"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias", Slot::kQkv, true, Dim::kQkv, Dim::kOne},
          {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput, kRequired, kTransposed},
          {"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"h.{}.attn.masked_bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth, kRequired, kTransposed},
          {"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn, kRequired, kTransposed},
          {"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"transformer.", ""}};
  return *family;
}

}  // namespace lanewise
