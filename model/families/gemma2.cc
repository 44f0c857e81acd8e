// Gemma 2: Gemma with norms after the sublayers too, soft-capped scores and
// logits, a sliding window on every second layer (Gemma Team,
// arXiv:2408.00118).
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gemma_config.h"
#include "model/families/llama_like.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

bool IsSliding(size_t layer) { return layer % 2 == 0; }

void SetNormsAndScale(ModelSpec* spec) {
  SetGemmaEmbeddingScale(spec);
  SetGemmaOutputNorms(spec);
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadLlamaLike(config, file,
                    GemmaDefaults("gemma2", "hidden_activation")));
  SetNormsAndScale(&spec);
  LANEWISE_RETURN_IF_ERROR(ReadGemmaScores(config, file, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadWindows(config, file, IsSliding, &spec));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadGgufLlamaLike(metadata,
                        GemmaDefaults("gemma2", "hidden_activation")));
  SetNormsAndScale(&spec);
  SetGgufGemmaScale(46, &spec);
  LANEWISE_ASSIGN_OR_RETURN(
      const float softcap,
      metadata.GetFloatOr("gemma2.attn_logit_softcapping", 50.0));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.softcap,
      metadata.GetFloatOr("gemma2.final_logit_softcapping", 30.0));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window, metadata.GetUintOr("gemma2.attention.sliding_window",
                                              kMaxPositions, 4096));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].attention.softcap = softcap;
    if (IsSliding(i)) spec.layers[i].attention.window = window;
  }
  return spec;
}

}  // namespace

const Family& Gemma2Family() {
  static const Family* const family = new Family{
      "gemma2",      {"gemma2"},   {"gemma2"},
      FromConfig,    FromMetadata, Join({GemmaTensors(), Gemma2NormTensors()}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
