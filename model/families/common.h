// Readers of configuration parts that several families share.
#ifndef LANEWISE_MODEL_FAMILIES_COMMON_H_
#define LANEWISE_MODEL_FAMILIES_COMMON_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
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

// Size of the vocabulary: <architecture>.vocab_size or the number of tokens.
absl::StatusOr<size_t> ReadGgufVocabSize(const Metadata& metadata,
                                         absl::string_view architecture);

// 1 / sqrt(head_dim)
float DefaultScale(size_t head_dim);

// sqrt(width), by which embeddings are scaled.
float EmbeddingScale(size_t width);

// Slopes of ALiBi (Press et al., arXiv:2108.12409), times `factor`.
std::vector<float> AlibiSlopes(size_t heads, double factor);

// Windows of the layers that layer_types calls "sliding_attention", or where
// there is no such list of those by_default says. An error when there are any
// and sliding_window has no size.
absl::Status ReadWindows(const nlohmann::json& config, absl::string_view file,
                         absl::FunctionRef<bool(size_t layer)> by_default,
                         ModelSpec* spec);

// How many elements of a head are rotated: the fraction under `key` (older
// files) or partial_rotary_factor of rope_parameters, else `absent`.
absl::StatusOr<size_t> ReadRotaryDim(const nlohmann::json& config,
                                     absl::string_view file, size_t head_dim,
                                     absl::string_view key, double absent);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_COMMON_H_
