// OPT: GPT with learned positions from row 2 on; the 350M model has its norms
// after the sublayers and a smaller embedding (Zhang et al., arXiv:2205.01068).
#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kPositionOffset = 2;

// do_layer_norm_before false: norms after the addition, none at the end.
void MoveNorms(ModelSpec* spec) {
  for (LayerSpec& layer : spec->layers) {
    layer.attention_norms.input.swap(layer.attention_norms.after);
    layer.ffn_norms.input.swap(layer.ffn_norms.after);
  }
  spec->final_norm.reset();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"opt"};
  keys.layers = "num_hidden_layers";
  keys.width = "hidden_size";
  keys.heads = "num_attention_heads";
  keys.ffn = "ffn_dim";
  keys.positions = "max_position_embeddings";
  keys.eps = "";
  keys.activation = "relu";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  spec.positions = {PositionSpec::Kind::kLearned, kPositionOffset};
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t embedding,
      GetUintOr(config, file, "word_embed_proj_dim", kMaxWidth, spec.width, 1));
  if (embedding != spec.width) spec.embedding_width = embedding;
  LANEWISE_ASSIGN_OR_RETURN(const bool bias,
                            GetBoolOr(config, file, "enable_bias", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool before, GetBoolOr(config, file, "do_layer_norm_before", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool no_final,
      GetBoolOr(config, file, "_remove_final_layer_norm", false));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool affine,
      GetBoolOr(config, file, "layer_norm_elementwise_affine", true));
  if (!affine) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": layer_norm_elementwise_affine: expected true, found false"));
  }
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.output_bias = bias;
    layer.ffn.bias = bias;
  }
  if (!before) MoveNorms(&spec);
  if (no_final) spec.final_norm.reset();
  return spec;
}

}  // namespace

const Family& OptFamily() {
  static const Family* const family = new Family{
      "opt",
      {"opt"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embed_tokens.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kEmbeddingWidth},
          {"embed_positions.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"project_in.weight", "", Slot::kEmbeddingIn, false, Dim::kWidth, Dim::kEmbeddingWidth},
          {"project_out.weight", "", Slot::kEmbeddingOut, false, Dim::kEmbeddingWidth, Dim::kWidth},
          {"final_layer_norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"final_layer_norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kEmbeddingWidth},
          {"layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.self_attn.q_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"layers.{}.self_attn.q_proj.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"layers.{}.self_attn.k_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"layers.{}.self_attn.k_proj.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"layers.{}.self_attn.v_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"layers.{}.self_attn.v_proj.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"layers.{}.self_attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"layers.{}.self_attn.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.final_layer_norm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.final_layer_norm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.final_layer_norm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.final_layer_norm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.fc1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.fc1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"layers.{}.fc2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.fc2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"model.decoder.", "decoder.", ""}};
  return *family;
}

}  // namespace lanewise
