// Llama: RMSNorm before each sublayer, RoPE, grouped-query attention, gated
// FFN (Touvron et al., arXiv:2302.13971). GGUF has Mistral and Mixtral under
// this name too.
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/moe_config.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr LlamaLike kDefaults{"llama", "llama"};

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  return ReadLlamaLike(config, file, kDefaults);
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, kDefaults));
  // The file's rows are in rotated pairs; with whole heads they are put back
  // to halves at load, so that a model gives the bits of its folder.
  if (spec.ropes[0].rotary_dim != spec.layers[0].attention.head_dim) {
    spec.ropes[0].pairing = RopePairing::kInterleaved;
  }
  LANEWISE_RETURN_IF_ERROR(
      ReadGgufMoe(metadata, kDefaults.architecture, true, &spec));
  return spec;
}

}  // namespace

const Family& LlamaFamily() {
  static const Family* const family =
      new Family{"llama",
                 {"llama"},
                 {"llama"},
                 FromConfig,
                 FromMetadata,
                 Join({AllLlamaTensors(TensorLayout::kRotaryPairs),
                       StackedExpertTensors()}),
                 {"model.", ""}};
  return *family;
}

}  // namespace lanewise
