// SmolLM3: Llama without RoPE on every fourth layer (NoPE: Yang et al.,
// arXiv:2501.18795).
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/qwen.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// no_rope_layers holds 1 for a layer with RoPE and 0 for one without.
absl::Status RemoveRope(const nlohmann::json& config, absl::string_view file,
                        ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t interval,
      GetUintOr(config, file, "no_rope_layer_interval", kMaxLayers, 4, 1));
  std::vector<bool> rope;
  if (FindJson(config, "no_rope_layers") != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* layers,
                              GetArray(config, file, "no_rope_layers"));
    for (const nlohmann::json& layer : *layers) {
      LANEWISE_ASSIGN_OR_RETURN(const uint64_t value,
                                ToUint(layer, file, "no_rope_layers", 1));
      rope.push_back(value != 0);
    }
  } else {
    for (size_t i = 0; i < spec->layers.size(); ++i) {
      rope.push_back((i + 1) % interval != 0);
    }
  }
  if (rope.size() != spec->layers.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": no_rope_layers: expected one number for each of the ",
        spec->layers.size(), " layers, found ", rope.size()));
  }
  for (size_t i = 0; i < rope.size(); ++i) {
    if (!rope[i]) spec->layers[i].attention.rope.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LlamaLike defaults{"smollm3"};
  defaults.tied = true;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  LANEWISE_RETURN_IF_ERROR(RemoveRope(config, file, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadQwenWindows(config, file, &spec));
  return spec;
}

}  // namespace

const Family& Smollm3Family() {
  static const Family* const family =
      new Family{"smollm3",         {"smollm3"},   {}, FromConfig, nullptr,
                 AllLlamaTensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
