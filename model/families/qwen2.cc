// Qwen2 and 2.5: Llama with biases on query, key and value, and a sliding
// window on the upper layers where asked for (Yang et al., arXiv:2407.10671).
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/qwen.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr LlamaLike kDefaults{"qwen2", "qwen2"};

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, kDefaults));
  ForLayers(&spec, [](LayerSpec& layer) {
    layer.attention.qkv_bias = true;
    layer.attention.output_bias = false;
  });
  LANEWISE_RETURN_IF_ERROR(ReadQwenWindows(config, file, &spec));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  return ReadGgufLlamaLike(metadata, kDefaults);
}

}  // namespace

const Family& Qwen2Family() {
  static const Family* const family =
      new Family{"qwen2",      {"qwen2"},         {"qwen2"},     FromConfig,
                 FromMetadata, AllLlamaTensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
