// What the many descendants of Llama share: the names in their files, RMSNorm
// (or LayerNorm) before each sublayer, RoPE, grouped-query attention, a gated
// FFN. A descendant's file says where it differs.
#ifndef LANEWISE_MODEL_FAMILIES_LLAMA_LIKE_H_
#define LANEWISE_MODEL_FAMILIES_LLAMA_LIKE_H_

#include <initializer_list>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/families/family.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// What a configuration does not say, and the keys that differ.
struct LlamaLike {
  absl::string_view family;
  absl::string_view architecture = "";  // the prefix of GGUF keys
  NormKind norm = NormKind::kRmsNorm;
  bool norm_bias = false;
  absl::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  absl::string_view activation_key = "hidden_act";
  absl::string_view activation = "silu";
  bool gated = true;
  bool tied = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  absl::string_view rotary_key = "partial_rotary_factor";
  double rotary = 1.0;  // the fraction of a head that is rotated
  RopePairing pairing = RopePairing::kHalves;
};

absl::StatusOr<ModelSpec> ReadLlamaLike(const nlohmann::json& config,
                                        absl::string_view file,
                                        const LlamaLike& defaults);

// From GGUF. RoPE's pairs are halves of a head.
absl::StatusOr<ModelSpec> ReadGgufLlamaLike(const Metadata& metadata,
                                            const LlamaLike& defaults);

// Sets a field of every layer.
template <typename Edit>
void ForLayers(ModelSpec* spec, const Edit& edit) {
  for (LayerSpec& layer : spec->layers) edit(layer);
}

// Tables, to be joined. Tensors that a spec does not have are not looked for.
std::vector<TensorRule> Join(
    std::initializer_list<std::vector<TensorRule>> tables);
std::vector<TensorRule> EmbeddingTensors();  // and final norm and head
// q_proj, k_proj, v_proj; gguf_qk: layout of the first two in GGUF.
std::vector<TensorRule> SeparateQkvTensors(
    TensorLayout gguf_qk = TensorLayout::kPlain);
std::vector<TensorRule> QkNormTensors();           // q_norm, k_norm
std::vector<TensorRule> AttentionOutputTensors();  // o_proj
std::vector<TensorRule> InputNormTensors();        // before each sublayer
std::vector<TensorRule> GatedFfnTensors();  // gate_proj, up_proj, down_proj
std::vector<TensorRule> StackedExpertTensors();  // of GGUF
// All but q/k norm and experts.
std::vector<TensorRule> AllLlamaTensors(
    TensorLayout gguf_qk = TensorLayout::kPlain);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_LLAMA_LIKE_H_
