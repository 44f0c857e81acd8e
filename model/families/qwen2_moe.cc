// Qwen1.5 and Qwen2 MoE: Qwen2 with a mixture of experts and a shared one
// behind a gate.
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/moe_config.h"
#include "model/families/qwen.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, {"qwen2_moe"}));
  LANEWISE_ASSIGN_OR_RETURN(const bool qkv_bias,
                            GetBoolOr(config, file, "qkv_bias", true));
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.attention.qkv_bias = qkv_bias;
    layer.attention.output_bias = false;
  });
  LANEWISE_RETURN_IF_ERROR(ReadQwenWindows(config, file, &spec));
  LANEWISE_ASSIGN_OR_RETURN(MoeSpec moe, ReadMoe(config, file));
  LANEWISE_ASSIGN_OR_RETURN(moe.renormalize,
                            GetBoolOr(config, file, "norm_topk_prob", false));
  SharedExpertSpec shared;
  shared.gate = true;
  LANEWISE_ASSIGN_OR_RETURN(
      shared.width,
      GetUint(config, file, "shared_expert_intermediate_size", kMaxWidth));
  moe.shared = shared;
  LANEWISE_RETURN_IF_ERROR(SetSparseLayers(config, file, moe, &spec));
  return spec;
}

}  // namespace

const Family& Qwen2MoeFamily() {
  static const Family* const family = new Family{
      "qwen2_moe",
      {"qwen2_moe"},
      {},
      FromConfig,
      nullptr,
      Join({AllLlamaTensors(),
            QwenExpertTensors(),
            {
                // clang-format off
          {"layers.{}.mlp.shared_expert.gate_proj.weight", "", Slot::kSharedGate, false, Dim::kSharedFfn, Dim::kWidth},
          {"layers.{}.mlp.shared_expert.up_proj.weight", "", Slot::kSharedUp, false, Dim::kSharedFfn, Dim::kWidth},
          {"layers.{}.mlp.shared_expert.down_proj.weight", "", Slot::kSharedDown, false, Dim::kWidth, Dim::kSharedFfn},
          {"layers.{}.mlp.shared_expert_gate.weight", "", Slot::kSharedWeight, false, Dim::kOne, Dim::kWidth},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
