#include "model/families/qwen.h"

#include "model/families/common.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::Status ReadQwenWindows(const nlohmann::json& config,
                             absl::string_view file, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const bool sliding, GetBoolOr(config, file, "use_sliding_window", false));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t first,
      GetUintOr(config, file, "max_window_layers", kMaxLayers, 28));
  return ReadWindows(
      config, file, [&](size_t layer) { return sliding && layer >= first; },
      spec);
}

std::vector<TensorRule> QwenExpertTensors() {
  return {
      // clang-format off
      {"layers.{}.mlp.gate.weight", "", Slot::kRouter, false, Dim::kExperts, Dim::kWidth},
      {"layers.{}.mlp.experts.{}.gate_proj.weight", "", Slot::kExpertGate, false, Dim::kFfn, Dim::kWidth},
      {"layers.{}.mlp.experts.{}.up_proj.weight", "", Slot::kExpertUp, false, Dim::kFfn, Dim::kWidth},
      {"layers.{}.mlp.experts.{}.down_proj.weight", "", Slot::kExpertDown, false, Dim::kWidth, Dim::kFfn},
      // clang-format on
  };
}

}  // namespace lanewise
