// GPT-Neo: GPT-2 with a window on every second layer and unscaled scores (Black
// et al., 2021).
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/families/gpt_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// attention_types: [[["global", "local"], 12]], the pattern and how often.
absl::StatusOr<std::vector<bool>> ReadLocal(const nlohmann::json& config,
                                            absl::string_view file,
                                            size_t layers) {
  std::vector<bool> local;
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* types,
                            GetArray(config, file, "attention_types"));
  for (const nlohmann::json& entry : *types) {
    const bool valid =
        entry.is_array() && entry.size() == 2 && entry[0].is_array();
    if (!valid) {
      return absl::InvalidArgumentError(absl::StrCat(
          file,
          ": attention_types: expected pairs of a pattern and a number, "
          "found ",
          DescribeJson(entry)));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        const size_t times,
        ToUint(entry[1], file, "attention_types", kMaxLayers));
    for (size_t i = 0; i < times && local.size() <= layers; ++i) {
      for (const nlohmann::json& type : entry[0]) {
        if (type != "global" && type != "local") {
          return absl::UnimplementedError(absl::StrCat(
              file, ": attention_types: expected global or local, found ",
              DescribeJson(type)));
        }
        local.push_back(type == "local");
      }
    }
  }
  if (local.size() != layers) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": attention_types: expected the types of ", layers,
                     " layers, found ", local.size()));
  }
  return local;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  GptLike keys{"gpt_neo"};
  keys.layers = "num_layers";
  keys.width = "hidden_size";
  keys.heads = "num_heads";
  keys.ffn = "intermediate_size";
  keys.positions = "max_position_embeddings";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadGptLike(config, file, keys));
  spec.positions.kind = PositionSpec::Kind::kLearned;
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<bool> local,
                            ReadLocal(config, file, spec.layers.size()));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window,
      GetUintOr(config, file, "window_size", kMaxPositions, 256, 1));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    AttentionSpec& attention = spec.layers[i].attention;
    attention.scale = 1.0f;
    attention.qkv_bias = false;
    if (local[i]) attention.window = window;
  }
  return spec;
}

}  // namespace

const Family& GptNeoFamily() {
  static const Family* const family = new Family{
      "gpt_neo",
      {"gpt_neo"},
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
          {"h.{}.attn.attention.q_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"h.{}.attn.attention.k_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"h.{}.attn.attention.v_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"h.{}.attn.attention.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"h.{}.attn.attention.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"h.{}.attn.attention.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"h.{}.attn.attention.masked_bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
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
