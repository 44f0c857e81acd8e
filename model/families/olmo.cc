// OLMo: Llama with LayerNorm that has no weights, and queries, keys and values
// clipped (Groeneveld et al., arXiv:2402.00838).
#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LlamaLike defaults{"olmo"};
  defaults.norm = NormKind::kLayerNorm;
  defaults.eps_key = "layer_norm_eps";
  defaults.eps = 1e-5;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  LANEWISE_ASSIGN_OR_RETURN(const float clip,
                            GetFloatOr(config, file, "clip_qkv", 0.0));
  if (clip < 0.0f) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": clip_qkv: expected a positive number, found ", clip));
  }
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.attention_norms.input->weight = layer.ffn_norms.input->weight = false;
    layer.attention.qkv_clip = clip;
  });
  spec.final_norm->weight = false;
  return spec;
}

}  // namespace

const Family& OlmoFamily() {
  static const Family* const family = new Family{
      "olmo",        {"olmo"}, {}, FromConfig, nullptr, AllLlamaTensors(),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
