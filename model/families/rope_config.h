// Readers of RopeSpec.
#ifndef LANEWISE_MODEL_FAMILIES_ROPE_CONFIG_H_
#define LANEWISE_MODEL_FAMILIES_ROPE_CONFIG_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// RoPE from rope_parameters (newer files) or rope_theta and rope_scaling
// (older ones). `positions` is max_position_embeddings.
absl::StatusOr<RopeSpec> ReadRope(const nlohmann::json& config,
                                  absl::string_view file, size_t rotary_dim,
                                  size_t positions);

// The object inside: rope_theta (unless *rope has it already), rope_type and
// what belongs to it. `where` is what messages name.
absl::Status ReadRopeParameters(const nlohmann::json& parameters,
                                const std::string& where, size_t positions,
                                RopeSpec* rope);

// The same from GGUF: <architecture>.rope.*.
absl::StatusOr<RopeSpec> ReadGgufRope(const Metadata& metadata,
                                      absl::string_view architecture,
                                      size_t rotary_dim, size_t positions);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_ROPE_CONFIG_H_
