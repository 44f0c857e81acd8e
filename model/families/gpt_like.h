// What the families after GPT-2 share: LayerNorm with bias before each
// sublayer, as many key as query heads, an FFN without gate, biases.
#ifndef LANEWISE_MODEL_FAMILIES_GPT_LIKE_H_
#define LANEWISE_MODEL_FAMILIES_GPT_LIKE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// Keys of config.json; where a key has a second name both stand, "n_layer|
// num_hidden_layers", and the first that is there counts.
struct GptLike {
  absl::string_view family;
  absl::string_view layers = "n_layer";
  absl::string_view width = "n_embd";
  absl::string_view heads = "n_head";
  absl::string_view ffn = "n_inner";  // absent in a file: 4 times the width
  absl::string_view positions = "n_positions";
  size_t default_positions = 0;  // 0: the file must say
  absl::string_view eps = "layer_norm_epsilon";
  absl::string_view activation_key = "activation_function";
  absl::string_view activation = "gelu_new";
  bool tied = true;
};

// Without positions: a family adds learned ones, RoPE or slopes.
absl::StatusOr<ModelSpec> ReadGptLike(const nlohmann::json& config,
                                      absl::string_view file,
                                      const GptLike& keys);

// GGUF's keys under those of config.json (the first of each pair of names), for
// a family's reader of the latter.
absl::StatusOr<nlohmann::json> GgufAsConfig(const Metadata& metadata,
                                            absl::string_view architecture,
                                            const GptLike& keys);

// RoPE on `rotary_dim` elements of each head.
absl::Status AddRope(const nlohmann::json& config, absl::string_view file,
                     size_t rotary_dim, RopePairing pairing, ModelSpec* spec);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_GPT_LIKE_H_
