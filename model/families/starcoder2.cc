// StarCoder2: LayerNorm and biases, RoPE, grouped-query attention with a
// sliding window, an FFN without gate (Lozhkov et al., arXiv:2402.19173).
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

LlamaLike Defaults() {
  LlamaLike defaults{"starcoder2", "starcoder2"};
  defaults.norm = NormKind::kLayerNorm;
  defaults.norm_bias = true;
  defaults.eps_key = "norm_epsilon";
  defaults.eps = 1e-5;
  defaults.activation = "gelu_pytorch_tanh";
  defaults.gated = false;
  defaults.tied = true;
  return defaults;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, Defaults()));
  LANEWISE_ASSIGN_OR_RETURN(const bool bias,
                            GetBoolOr(config, file, "use_bias", true));
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.attention.qkv_bias = layer.attention.output_bias = bias;
    layer.ffn.bias = bias;
  });
  const bool sliding = FindJson(config, "sliding_window") != nullptr;
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [&](size_t) { return sliding; }, &spec));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, Defaults()));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window,
      metadata.GetUintOr("starcoder2.attention.sliding_window", kMaxPositions,
                         0));
  ForLayers(&spec, [&](LayerSpec& layer) { layer.attention.window = window; });
  return spec;
}

}  // namespace

const Family& Starcoder2Family() {
  static const Family* const family = new Family{
      "starcoder2",
      {"starcoder2"},
      {"starcoder2"},
      FromConfig,
      FromMetadata,
      Join({EmbeddingTensors(),
            InputNormTensors(),
            SeparateQkvTensors(),
            AttentionOutputTensors(),
            {
                // clang-format off
          {"layers.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"layers.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
