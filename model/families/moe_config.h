// Readers of MoeSpec.
#ifndef LANEWISE_MODEL_FAMILIES_MOE_CONFIG_H_
#define LANEWISE_MODEL_FAMILIES_MOE_CONFIG_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// num_local_experts (or num_experts) and num_experts_per_tok.
absl::StatusOr<MoeSpec> ReadMoe(const nlohmann::json& config,
                                absl::string_view file);

// Qwen's choice: makes the layers mixtures of experts of moe_intermediate_size
// that decoder_sparse_step and mlp_only_layers leave.
absl::Status SetSparseLayers(const nlohmann::json& config,
                             absl::string_view file, const MoeSpec& moe,
                             ModelSpec* spec);

// expert_count and expert_used_count of GGUF, where there are any: all layers
// become mixtures, of expert_feed_forward_length where that is given.
absl::Status ReadGgufMoe(const Metadata& metadata,
                         absl::string_view architecture, bool renormalize,
                         ModelSpec* spec);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_MOE_CONFIG_H_
