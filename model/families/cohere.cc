// Command-R: a parallel block behind one LayerNorm without bias, interleaved
// RoPE, scaled logits; norms of the query and key heads in R+.
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LlamaLike defaults{"cohere"};
  defaults.norm = NormKind::kLayerNorm;
  defaults.eps_key = "layer_norm_eps";
  defaults.eps = 1e-5;
  defaults.tied = true;
  defaults.pairing = RopePairing::kInterleaved;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  LANEWISE_ASSIGN_OR_RETURN(spec.head.scale,
                            GetFloatOr(config, file, "logit_scale", 0.0625));
  LANEWISE_ASSIGN_OR_RETURN(const bool qk_norm,
                            GetBoolOr(config, file, "use_qk_norm", false));
  ForLayers(&spec, [&](LayerSpec& layer) {
    layer.parallel = true;
    layer.ffn_norms.input.reset();
    if (qk_norm) {
      layer.attention.qk_norm = QkNormSpec{*layer.attention_norms.input, true};
    }
  });
  return spec;
}

}  // namespace

const Family& CohereFamily() {
  static const Family* const family = new Family{
      "cohere",
      {"cohere"},
      {},
      FromConfig,
      nullptr,
      Join({AllLlamaTensors(),
            {
                // clang-format off
          {"layers.{}.self_attn.q_norm.weight", "", Slot::kQueryNorm, false, Dim::kHeads, Dim::kHeadDim},
          {"layers.{}.self_attn.k_norm.weight", "", Slot::kKeyNorm, false, Dim::kKvHeads, Dim::kHeadDim},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
