// Qwen3: Llama with an RMSNorm on each query and key head (Yang et al.,
// arXiv:2505.09388).
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/qwen.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr LlamaLike kDefaults{"qwen3", "qwen3"};

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
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, kDefaults));
  SetQkNorm(&spec);
  return spec;
}

}  // namespace

const Family& Qwen3Family() {
  static const Family* const family = new Family{
      "qwen3",       {"qwen3"},    {"qwen3"},
      FromConfig,    FromMetadata, Join({AllLlamaTensors(), QkNormTensors()}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
