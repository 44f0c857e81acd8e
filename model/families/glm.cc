// GLM-4: Llama with interleaved RoPE on half of each head, biases on query, key
// and value, gate and up in one tensor; GLM-4-0414 has norms after the
// sublayers too (GLM Team, arXiv:2406.12793).
#include "model/families/families.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> Read(const nlohmann::json& config,
                               absl::string_view file,
                               absl::string_view family) {
  LlamaLike defaults{family};
  defaults.eps = 1.5625e-7;
  defaults.rotary = 0.5;
  defaults.pairing = RopePairing::kInterleaved;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  // attention_bias is of query, key and value only.
  ForLayers(&spec,
            [](LayerSpec& layer) { layer.attention.output_bias = false; });
  return spec;
}

absl::StatusOr<ModelSpec> GlmFromConfig(const nlohmann::json& config,
                                        absl::string_view file) {
  return Read(config, file, "glm");
}

absl::StatusOr<ModelSpec> Glm4FromConfig(const nlohmann::json& config,
                                         absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, Read(config, file, "glm4"));
  ForLayers(&spec, [](LayerSpec& layer) {
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
  static const Family* const family = new Family{
      "glm", {"glm"}, {}, GlmFromConfig, nullptr, Tensors(), {"model.", ""}};
  return *family;
}

const Family& Glm4Family() {
  static const Family* const family = new Family{
      "glm4", {"glm4"}, {}, Glm4FromConfig, nullptr, Tensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
