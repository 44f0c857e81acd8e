// Phi-3 and Phi-4: Llama with query, key and value in one tensor, gate and up
// in another, longrope (Abdin et al., arXiv:2404.14219).
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr LlamaLike kDefaults{"phi3", "phi3"};

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, kDefaults));
  const bool sliding = FindJson(config, "sliding_window") != nullptr;
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [&](size_t) { return sliding; }, &spec));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, kDefaults));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window,
      metadata.GetUintOr("phi3.attention.sliding_window", kMaxPositions, 0));
  ForLayers(&spec, [&](LayerSpec& layer) { layer.attention.window = window; });
  LANEWISE_ASSIGN_OR_RETURN(
      spec.ropes[0].attention_factor,
      metadata.GetFloatOr("phi3.rope.scaling.attn_factor",
                          spec.ropes[0].attention_factor));
  return spec;
}

}  // namespace

const Family& Phi3Family() {
  constexpr auto kOptional = Presence::kOptional;
  static const Family* const family = new Family{
      "phi3",
      {"phi3"},
      {"phi3"},
      FromConfig,
      FromMetadata,
      Join(
          {EmbeddingTensors(),
           InputNormTensors(),
           AttentionOutputTensors(),
           {
               // clang-format off
          {"", "rope_factors_short.weight", Slot::kRopeShortFactors, false, Dim::kHalfRotary, Dim::kOne, kOptional},
          {"", "rope_factors_long.weight", Slot::kRopeLongFactors, false, Dim::kHalfRotary, Dim::kOne, kOptional},
          {"layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight", Slot::kQkv, false, Dim::kQkv, Dim::kWidth},
          {"layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight", Slot::kGateUp, false, Dim::kGateUp, Dim::kWidth},
          {"layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
               // clang-format on
           }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
