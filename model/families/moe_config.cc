#include "model/families/moe_config.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::StatusOr<MoeSpec> ReadMoe(const nlohmann::json& config,
                                absl::string_view file) {
  MoeSpec moe;
  const absl::string_view key = FindJson(config, "num_local_experts") != nullptr
                                    ? "num_local_experts"
                                    : "num_experts";
  LANEWISE_ASSIGN_OR_RETURN(moe.experts,
                            GetUint(config, file, key, kMaxExperts));
  LANEWISE_ASSIGN_OR_RETURN(
      moe.top_k,
      GetUint(config, file, "num_experts_per_tok", kMaxExpertsPerToken));
  return moe;
}

absl::Status SetSparseLayers(const nlohmann::json& config,
                             absl::string_view file, const MoeSpec& moe,
                             ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t step,
      GetUintOr(config, file, "decoder_sparse_step", kMaxLayers, 1, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t width,
      GetUint(config, file, "moe_intermediate_size", kMaxWidth));
  absl::flat_hash_set<size_t> dense;
  if (FindJson(config, "mlp_only_layers") != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* layers,
                              GetArray(config, file, "mlp_only_layers"));
    for (const nlohmann::json& layer : *layers) {
      LANEWISE_ASSIGN_OR_RETURN(
          const size_t index,
          ToUint(layer, file, "mlp_only_layers", kMaxLayers));
      dense.insert(index);
    }
  }
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    if ((i + 1) % step != 0 || dense.contains(i)) continue;
    spec->layers[i].ffn.width = width;
    spec->layers[i].ffn.moe = moe;
  }
  return absl::OkStatus();
}

absl::Status ReadGgufMoe(const Metadata& metadata,
                         absl::string_view architecture, bool renormalize,
                         ModelSpec* spec) {
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(architecture, ".", name);
  };
  MoeSpec moe;
  LANEWISE_ASSIGN_OR_RETURN(
      moe.experts, metadata.GetUintOr(key("expert_count"), kMaxExperts, 0));
  if (moe.experts == 0) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(
      moe.top_k,
      metadata.GetUint(key("expert_used_count"), kMaxExpertsPerToken));
  moe.renormalize = renormalize;
  for (LayerSpec& layer : spec->layers) {
    LANEWISE_ASSIGN_OR_RETURN(
        layer.ffn.width, metadata.GetUintOr(key("expert_feed_forward_length"),
                                            kMaxWidth, layer.ffn.width));
    layer.ffn.moe = moe;
  }
  return absl::OkStatus();
}

}  // namespace lanewise
