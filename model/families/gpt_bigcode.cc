// StarCoder 1: GPT-2 with one key and value head for all query heads (Li et
// al., arXiv:2305.06161).
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"gpt_bigcode"};
  keys.activation = "gelu_pytorch_tanh";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  spec.positions.kind = PositionSpec::Kind::kLearned;
  LANEWISE_ASSIGN_OR_RETURN(const bool multi_query,
                            GetBoolOr(config, file, "multi_query", true));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool scaled, GetBoolOr(config, file, "scale_attn_weights", true));
  for (LayerSpec& layer : spec.layers) {
    if (multi_query) layer.attention.kv_heads = 1;
    if (!scaled) layer.attention.scale = 1.0f;
  }
  return spec;
}

}  // namespace

const Family& GptBigcodeFamily() {
  static const Family* const family = new Family{
      "gpt_bigcode",
      {"gpt_bigcode"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"wte.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"wpe.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"ln_f.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"ln_f.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"h.{}.ln_1.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_1.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.c_attn.weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.attn.c_attn.bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne, Presence::kRequired, TensorLayout::kKvGroups},
          {"h.{}.attn.c_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"h.{}.attn.c_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"h.{}.ln_2.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_2.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.mlp.c_fc.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"h.{}.mlp.c_fc.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"h.{}.mlp.c_proj.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"h.{}.mlp.c_proj.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"transformer.", ""}};
  return *family;
}

}  // namespace lanewise
