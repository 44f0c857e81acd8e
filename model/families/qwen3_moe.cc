// Qwen3 MoE: Qwen3 with a mixture of experts.
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/moe_config.h"
#include "model/families/qwen.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr LlamaLike kDefaults{"qwen3_moe", "qwen3moe"};

void SetQkNorm(ModelSpec* spec) {
  ForLayers(spec, [](LayerSpec& layer) {
    layer.attention.qk_norm = QkNormSpec{*layer.attention_norms.input};
  });
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, kDefaults));
  SetQkNorm(&spec);
  LANEWISE_RETURN_IF_ERROR(ReadQwenWindows(config, file, &spec));
  LANEWISE_ASSIGN_OR_RETURN(MoeSpec moe, ReadMoe(config, file));
  LANEWISE_ASSIGN_OR_RETURN(moe.renormalize,
                            GetBoolOr(config, file, "norm_topk_prob", false));
  LANEWISE_RETURN_IF_ERROR(SetSparseLayers(config, file, moe, &spec));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, kDefaults));
  SetQkNorm(&spec);
  LANEWISE_RETURN_IF_ERROR(
      ReadGgufMoe(metadata, kDefaults.architecture, true, &spec));
  return spec;
}

}  // namespace

const Family& Qwen3MoeFamily() {
  static const Family* const family =
      new Family{"qwen3_moe",
                 {"qwen3_moe"},
                 {"qwen3moe"},
                 FromConfig,
                 FromMetadata,
                 Join({AllLlamaTensors(), QkNormTensors(), QwenExpertTensors(),
                       StackedExpertTensors()}),
                 {"model.", ""}};
  return *family;
}

}  // namespace lanewise
