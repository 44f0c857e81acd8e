// Mixtral: Mistral with a mixture of experts (Jiang et al., arXiv:2401.04088).
// Its GGUF files are those of Llama.
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/families/moe_config.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LlamaLike defaults{"mixtral"};
  defaults.eps = 1e-5;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, defaults));
  const bool sliding = FindJson(config, "sliding_window") != nullptr;
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [&](size_t) { return sliding; }, &spec));
  LANEWISE_ASSIGN_OR_RETURN(MoeSpec moe, ReadMoe(config, file));
  moe.renormalize = true;
  ForLayers(&spec, [&](LayerSpec& layer) { layer.ffn.moe = moe; });
  return spec;
}

}  // namespace

const Family& MixtralFamily() {
  static const Family* const family = new Family{
      "mixtral",
      {"mixtral"},
      {},
      FromConfig,
      nullptr,
      Join({EmbeddingTensors(),
            InputNormTensors(),
            SeparateQkvTensors(),
            AttentionOutputTensors(),
            {
                // clang-format off
          {"layers.{}.block_sparse_moe.gate.weight", "", Slot::kRouter, false, Dim::kExperts, Dim::kWidth},
          {"layers.{}.block_sparse_moe.experts.{}.w1.weight", "", Slot::kExpertGate, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.block_sparse_moe.experts.{}.w3.weight", "", Slot::kExpertUp, false, Dim::kFfn, Dim::kWidth},
          {"layers.{}.block_sparse_moe.experts.{}.w2.weight", "", Slot::kExpertDown, false, Dim::kWidth, Dim::kFfn},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
