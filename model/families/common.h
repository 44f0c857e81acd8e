// Readers of configuration parts that several families share.
#ifndef LANEWISE_MODEL_FAMILIES_COMMON_H_
#define LANEWISE_MODEL_FAMILIES_COMMON_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// "silu", "gelu_new", … as config.json names them. An unknown name is an error
// that lists those that are known; `key` is where it stood.
absl::StatusOr<Activation> ReadActivation(const nlohmann::json& config,
                                          absl::string_view file,
                                          absl::string_view key,
                                          absl::string_view absent);

// RoPE from rope_parameters (newer files) or rope_theta and rope_scaling
// (older ones). `positions` is max_position_embeddings.
absl::StatusOr<RopeSpec> ReadRope(const nlohmann::json& config,
                                  absl::string_view file, size_t rotary_dim,
                                  size_t positions);

// The same from GGUF: <architecture>.rope.*.
absl::StatusOr<RopeSpec> ReadGgufRope(const Metadata& metadata,
                                      absl::string_view architecture,
                                      size_t rotary_dim, size_t positions);

// Size of the vocabulary: <architecture>.vocab_size or the number of tokens.
absl::StatusOr<size_t> ReadGgufVocabSize(const Metadata& metadata,
                                         absl::string_view architecture);

// 1 / sqrt(head_dim)
float DefaultScale(size_t head_dim);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_COMMON_H_
