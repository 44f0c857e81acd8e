// GPT-J: a parallel block behind one norm, interleaved RoPE on a part of each
// head (Wang & Komatsuzaki, 2021).
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"gptj"};
  keys.tied = false;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  LANEWISE_ASSIGN_OR_RETURN(const size_t rotary_dim,
                            GetUintOr(config, file, "rotary_dim", kMaxHeadDim,
                                      spec.layers[0].attention.head_dim));
  LANEWISE_RETURN_IF_ERROR(
      AddRope(config, file, rotary_dim, RopePairing::kInterleaved, &spec));
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = true;
    layer.ffn_norms.input.reset();
    layer.attention.qkv_bias = layer.attention.output_bias = false;
  }
  spec.head.bias = true;
  return spec;
}

}  // namespace

const Family& GptjFamily() {
  static const Family* const family = new Family{
      "gptj",
      {"gptj"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"wte.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"ln_f.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"ln_f.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_head.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
          {"lm_head.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne},
          {"h.{}.ln_1.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"h.{}.ln_1.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.q_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"h.{}.attn.k_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"h.{}.attn.v_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"h.{}.attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"h.{}.attn.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"h.{}.attn.masked_bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"h.{}.mlp.fc_in.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"h.{}.mlp.fc_in.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"h.{}.mlp.fc_out.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"h.{}.mlp.fc_out.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"transformer.", ""}};
  return *family;
}

}  // namespace lanewise
