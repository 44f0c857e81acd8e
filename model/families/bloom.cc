// BLOOM: ALiBi, a norm after the embedding, query, key and value of each head
// together in one tensor (BigScience, arXiv:2211.05100).
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"bloom"};
  keys.layers = "n_layer|num_hidden_layers";
  keys.width = "hidden_size|n_embed";
  keys.heads = "n_head|num_attention_heads";
  keys.positions = "seq_length";
  keys.default_positions = kMaxPositions;
  keys.activation_key = "";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool after_norm,
      GetBoolOr(config, file, "apply_residual_connection_post_layernorm",
                false));
  if (after_norm) {
    return absl::UnimplementedError(absl::StrCat(
        file,
        ": apply_residual_connection_post_layernorm: expected false, "
        "found true"));
  }
  spec.embedding_norm = spec.final_norm;
  for (LayerSpec& layer : spec.layers) {
    layer.attention.slopes = AlibiSlopes(layer.attention.heads, 1.0);
  }
  return spec;
}

}  // namespace

const Family& BloomFamily() {
  static const Family* const family = new Family{
      "bloom",
      {"bloom"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"word_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"word_embeddings_layernorm.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"word_embeddings_layernorm.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"ln_f.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"ln_f.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"h.{}.input_layernorm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.input_layernorm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.self_attention.query_key_value.weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.self_attention.query_key_value.bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.self_attention.dense.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"h.{}.self_attention.dense.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"h.{}.post_attention_layernorm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.post_attention_layernorm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.mlp.dense_h_to_4h.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"h.{}.mlp.dense_h_to_4h.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"h.{}.mlp.dense_4h_to_h.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"h.{}.mlp.dense_4h_to_h.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"transformer.", ""}};
  return *family;
}

}  // namespace lanewise
