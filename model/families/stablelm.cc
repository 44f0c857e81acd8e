// StableLM: LayerNorm, rotations of a part of each head, a gated FFN, biases of
// queries, keys and values only (Bellagente et al., arXiv:2402.17834).
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

LlamaLike Defaults() {
  LlamaLike defaults{"stablelm", "stablelm"};
  defaults.norm = NormKind::kLayerNorm;
  defaults.norm_bias = true;
  defaults.eps_key = "layer_norm_eps";
  defaults.eps = 1e-5;
  defaults.rotary = 0.25;
  return defaults;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, Defaults()));
  LANEWISE_ASSIGN_OR_RETURN(const bool bias,
                            GetBoolOr(config, file, "use_qkv_bias", false));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool parallel,
      GetBoolOr(config, file, "use_parallel_residual", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool qk_norm,
                            GetBoolOr(config, file, "qk_layernorm", false));
  if (qk_norm) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": qk_layernorm: expected false, found true"));
  }
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.attention.qkv_bias = bias;
    layer.parallel = parallel;
    if (parallel) layer.ffn_norms.input.reset();
  });
  return spec;
}

}  // namespace

const Family& StablelmFamily() {
  static const Family* const family =
      new Family{"stablelm",        {"stablelm"},  {}, FromConfig, nullptr,
                 AllLlamaTensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
