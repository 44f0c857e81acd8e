// GLM-4: Llama with interleaved RoPE on half of each head, biases on query, key
// and value, gate and up in one tensor; GLM-4-0414 has norms after the
// sublayers too (GLM Team, arXiv:2406.12793).
#include <string>

#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                            GetString(config, file, "model_type"));
  LlamaLike defaults{type};
  defaults.eps = 1.5625e-7;
  defaults.rotary = 0.5;
  defaults.pairing = RopePairing::kInterleaved;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  ForLayers(&spec, [&](LayerSpec& layer) {
    // attention_bias is of query, key and value only.
    layer.attention.output_bias = false;
    if (type != "glm4") return;
    layer.attention_norms.output = layer.attention_norms.input;
    layer.ffn_norms.output = layer.ffn_norms.input;
  });
  return spec;
}

std::vector<TensorRule> Tensors() {
  return Join({EmbeddingTensors(),
               InputNormTensors(),
               SeparateQkvTensors(),
               AttentionOutputTensors(),
               {
                   // clang-format off
      {"layers.{}.post_self_attn_layernorm.weight", "", Slot::kAttentionOutputNorm, false, Dim::kWidth, Dim::kOne},
      {"layers.{}.post_mlp_layernorm.weight", "", Slot::kFfnOutputNorm, false, Dim::kWidth, Dim::kOne},
      {"layers.{}.mlp.gate_up_proj.weight", "", Slot::kGateUp, false, Dim::kGateUp, Dim::kWidth},
      {"layers.{}.mlp.down_proj.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
                   // clang-format on
               }});
}

}  // namespace

const Family& GlmFamily() {
  static const Family* const family =
      new Family{"glm",     {"glm", "glm4"}, {}, FromConfig, nullptr,
                 Tensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
