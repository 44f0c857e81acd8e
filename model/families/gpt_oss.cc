// gpt-oss: attention sinks, a window on every second layer, YaRN, a mixture of
// experts with clamped gates, biases everywhere (OpenAI, arXiv:2508.10925).
// Experts are stacked floats; the 4-bit blocks of the published files are
// another layout.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/moe_config.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// The gate is x · sigmoid(alpha x): the executor's quick GELU.
constexpr double kAlpha = 1.702;

absl::Status ReadExperts(const nlohmann::json& config, absl::string_view file,
                         ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(MoeSpec moe, ReadMoe(config, file));
  moe.renormalize = true;
  moe.router_bias = true;
  LANEWISE_ASSIGN_OR_RETURN(const double alpha,
                            GetFloatOr(config, file, "swiglu_alpha", kAlpha));
  if (std::fabs(alpha - kAlpha) > 1e-6) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": swiglu_alpha: expected ", kAlpha, ", found ", alpha));
  }
  LANEWISE_ASSIGN_OR_RETURN(const float limit,
                            GetFloatOr(config, file, "swiglu_limit", 7.0));
  if (!(limit > 0.0f)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": swiglu_limit: expected a positive number, found ", limit));
  }
  ForLayers(spec, [&](LayerSpec& layer) {
    layer.ffn.activation = Activation::kQuickGelu;
    layer.ffn.gate_limit = limit;
    layer.ffn.up_offset = 1.0f;
    layer.ffn.bias = true;
    layer.ffn.moe = moe;
  });
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LlamaLike defaults{"gpt_oss"};
  defaults.eps = 1e-5;
  defaults.attention_bias = true;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  ForLayers(&spec, [](LayerSpec& layer) { layer.attention.sinks = true; });
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [](size_t layer) { return layer % 2 == 0; }, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadExperts(config, file, &spec));
  return spec;
}

}  // namespace

const Family& GptOssFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kTransposed = TensorLayout::kTransposed;
  constexpr auto kEvenOdd = TensorLayout::kTransposedEvenOdd;
  static const Family* const family = new Family{
      "gpt_oss",
      {"gpt_oss"},
      {},
      FromConfig,
      nullptr,
      Join({EmbeddingTensors(),
            InputNormTensors(),
            SeparateQkvTensors(),
            AttentionOutputTensors(),
            {
                // clang-format off
          {"layers.{}.self_attn.sinks", "", Slot::kSinks, false, Dim::kHeads, Dim::kOne},
          {"layers.{}.mlp.router.weight", "", Slot::kRouter, false, Dim::kExperts, Dim::kWidth},
          {"layers.{}.mlp.router.bias", "", Slot::kRouter, true, Dim::kExperts, Dim::kOne},
          {"layers.{}.mlp.experts.gate_up_proj", "", Slot::kExpertGateUp, false, Dim::kGateUp, Dim::kWidth, kRequired, kEvenOdd},
          {"layers.{}.mlp.experts.gate_up_proj_bias", "", Slot::kExpertGateUp, true, Dim::kGateUp, Dim::kOne, kRequired, kEvenOdd},
          {"layers.{}.mlp.experts.down_proj", "", Slot::kExpertDown, false, Dim::kWidth, Dim::kFfn, kRequired, kTransposed},
          {"layers.{}.mlp.experts.down_proj_bias", "", Slot::kExpertDown, true, Dim::kWidth, Dim::kOne},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
