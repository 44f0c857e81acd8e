#include "model/families/gemma_config.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {

LlamaLike GemmaDefaults(absl::string_view family,
                        absl::string_view activation_key) {
  LlamaLike defaults{family, family};
  defaults.activation_key = activation_key;
  defaults.activation = "gelu_pytorch_tanh";
  defaults.tied = true;
  return defaults;
}

void SetGemmaEmbeddingScale(ModelSpec* spec) {
  spec->embedding_scale =
      static_cast<float>(std::sqrt(static_cast<double>(spec->width)));
}

void SetGemmaOutputNorms(ModelSpec* spec) {
  ForLayers(spec, [](LayerSpec& layer) {
    layer.attention_norms.output = layer.attention_norms.input;
    layer.ffn_norms.output = layer.ffn_norms.input;
  });
}

absl::Status ReadGemmaScores(const nlohmann::json& config,
                             absl::string_view file, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const double scalar,
      GetFloatOr(config, file, "query_pre_attn_scalar", 256.0));
  LANEWISE_ASSIGN_OR_RETURN(
      const float softcap,
      GetFloatOr(config, file, "attn_logit_softcapping", 0.0));
  LANEWISE_ASSIGN_OR_RETURN(
      spec->head.softcap,
      GetFloatOr(config, file, "final_logit_softcapping", 0.0));
  if (!(scalar > 0.0) || softcap < 0.0f || spec->head.softcap < 0.0f) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": query_pre_attn_scalar, attn_logit_softcapping, "
        "final_logit_softcapping: expected positive numbers, found ",
        scalar, ", ", softcap, ", ", spec->head.softcap));
  }
  ForLayers(spec, [&](LayerSpec& layer) {
    layer.attention.scale = static_cast<float>(1.0 / std::sqrt(scalar));
    layer.attention.softcap = softcap;
  });
  return absl::OkStatus();
}

void SetGgufGemmaScale(size_t layers, ModelSpec* spec) {
  if (spec->layers.size() != layers) return;
  ForLayers(spec, [&](LayerSpec& layer) {
    layer.attention.scale = DefaultScale(spec->width / layer.attention.heads);
  });
}

// clang-format off
std::vector<TensorRule> GemmaTensors() {
  return Join({SeparateQkvTensors(), AttentionOutputTensors(), GatedFfnTensors(), {
      {"embed_tokens.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"norm.weight", "output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
      {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
  }});
}

std::vector<TensorRule> GemmaNormTensors() {
  return {
      {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
      {"layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
  };
}

std::vector<TensorRule> Gemma2NormTensors() {
  return {
      {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
      {"layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight", Slot::kAttentionOutputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
      {"layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
      {"layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", Slot::kFfnOutputNorm, false, Dim::kWidth, Dim::kOne, Presence::kRequired, TensorLayout::kAddOne},
  };
}
// clang-format on

}  // namespace lanewise
