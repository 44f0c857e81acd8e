// GPT-2: LayerNorm before each sublayer, learned positions, fused query, key
// and value, biases everywhere, tied head (Radford et al., 2019).
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGptLike(config, file, {"gpt2"}));
  spec.positions.kind = PositionSpec::Kind::kLearned;
  LANEWISE_ASSIGN_OR_RETURN(
      const bool scaled, GetBoolOr(config, file, "scale_attn_weights", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool by_layer,
      GetBoolOr(config, file, "scale_attn_by_inverse_layer_idx", false));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    float& scale = spec.layers[i].attention.scale;
    if (!scaled) scale = 1.0f;
    if (by_layer) scale /= static_cast<float>(i + 1);
  }
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            GgufAsConfig(metadata, "gpt2", {"gpt2"}));
  return FromConfig(config, metadata.file());
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
