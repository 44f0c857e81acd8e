// What the families after BART share: an encoder-decoder with LayerNorm, biases
// everywhere and the same names of tensors (Lewis et al., arXiv:1910.13461).
#ifndef LANEWISE_MODEL_FAMILIES_BART_LIKE_H_
#define LANEWISE_MODEL_FAMILIES_BART_LIKE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/families/family.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

struct BartLike {
  absl::string_view family;
  // Norms before the sublayers, and one more after the last layer; else behind
  // the sublayers, and none.
  bool norm_first = false;
  bool embedding_norm = true;
  PositionSpec positions = {PositionSpec::Kind::kLearned, 2};
  absl::string_view activation = "gelu";  // where config.json names none
  bool head_bias = true;                  // final_logits_bias
  // Keys of config.json.
  absl::string_view encoder_positions = "max_position_embeddings";
  absl::string_view decoder_positions = "max_position_embeddings";
};

// The decoder, with the encoder in it. An error names a class in
// `architectures` that is no sequence-to-sequence model.
absl::StatusOr<ModelSpec> ReadBartLike(const nlohmann::json& config,
                                       absl::string_view file,
                                       const BartLike& keys);

struct BartTables {
  // Else they are computed. Where a file holds such ones they are not read: a
  // formula gives the same, and has no last row.
  bool learned_positions = true;
  bool key_bias = true;
};
std::vector<TensorRule> BartEncoderTensors(const BartTables& tables);
std::vector<TensorRule> BartDecoderTensors(const BartTables& tables);

// The family of one model_type, under whose name it goes.
using SpecReader = absl::StatusOr<ModelSpec>(const nlohmann::json& config,
                                             absl::string_view file);
Family* NewBartFamily(absl::string_view name, const BartTables& tables,
                      SpecReader* from_config);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_BART_LIKE_H_
