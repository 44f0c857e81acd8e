// Gemma: Llama with 1 + w as norm weights, scaled embeddings and a GELU gate
// (Gemma Team, arXiv:2403.08295).
#include "model/families/family.h"
#include "model/families/gemma_config.h"
#include "model/families/llama_like.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadLlamaLike(config, file, GemmaDefaults("gemma", "hidden_act")));
  SetGemmaEmbeddingScale(&spec);
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadGgufLlamaLike(metadata, GemmaDefaults("gemma", "hidden_act")));
  SetGemmaEmbeddingScale(&spec);
  return spec;
}

}  // namespace

const Family& GemmaFamily() {
  static const Family* const family = new Family{
      "gemma",       {"gemma"},    {"gemma"},
      FromConfig,    FromMetadata, Join({GemmaTensors(), GemmaNormTensors()}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
