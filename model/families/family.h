// What a family file provides: readers that turn a config.json or GGUF
// metadata into a ModelSpec, and the table of its tensors. Nothing else of a
// model is code.
//
// Adding an architecture: one file here, its rule in BUILD, its line in
// registry.cc, one conformance case.
#ifndef LANEWISE_MODEL_FAMILIES_FAMILY_H_
#define LANEWISE_MODEL_FAMILIES_FAMILY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/checkpoint.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// Where a tensor goes. Slots of layers are filled once per layer.
enum class Slot : uint8_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kEmbeddingNorm,
  kFinalNorm,
  kHead,
  kRopeFactors,  // GGUF's rope_freqs: RopeSpec::frequency_factors
  kAttentionInputNorm,
  kAttentionOutputNorm,
  kAttentionAfterNorm,
  kQuery,
  kKey,
  kValue,
  kQkv,  // query, key and value rows in one tensor
  kAttentionOutput,
  kFfnInputNorm,
  kFfnOutputNorm,
  kFfnAfterNorm,
  kGate,
  kUp,
  kDown,
  kIgnored,  // known and not needed
  kCount,
};

// Sizes that shapes are made of.
enum class Dim : uint8_t {
  kOne,
  kVocab,
  kPositions,
  kWidth,
  kQuery,
  kKey,
  kValue,
  kQkv,
  kAttentionOutput,
  kFfn,
  kHalfRotary,
};

// How a tensor's rows become the rows of its slot.
enum class TensorLayout : uint8_t {
  kPlain,        // [rows, cols]
  kTransposed,   // [cols, rows]: GPT-2's Conv1D
  kRotaryPairs,  // GGUF: rows of a head permuted so that rotated pairs are
                 // neighbours; put back to halves
};

enum class Presence : uint8_t { kRequired, kOptional };

// One tensor, in both kinds of files. `{}` in a name is the number of the
// layer. An empty name: not in that kind. Matrices are [rows, cols]; vectors
// (biases, norms) have cols kOne.
struct TensorRule {
  absl::string_view hugging_face;
  absl::string_view gguf;
  Slot slot;
  bool bias;  // the slot's bias rather than its weight
  Dim rows;
  Dim cols;
  Presence presence = Presence::kRequired;
  TensorLayout layout = TensorLayout::kPlain;  // in a folder
  TensorLayout gguf_layout = TensorLayout::kPlain;
};

struct Family {
  absl::string_view name;
  std::vector<absl::string_view> model_types;  // config.json's model_type
  std::vector<absl::string_view> gguf_architectures;  // general.architecture
  absl::StatusOr<ModelSpec> (*from_config)(const nlohmann::json& config,
                                           absl::string_view file);
  absl::StatusOr<ModelSpec> (*from_metadata)(const Metadata& metadata);
  std::vector<TensorRule> tensors;
  // Prefixes that names in a folder may have, tried in this order.
  std::vector<absl::string_view> prefixes = {""};
};

// All families.
absl::Span<const Family* const> Families();

// The family of a checkpoint, by its model_type or general.architecture. The
// error for an unknown one names it and lists those that are known.
absl::StatusOr<const Family*> FindFamily(const Checkpoint& checkpoint);

// The spec of a checkpoint by its family's reader; sizes are checked against
// the limits of model/limits.h.
absl::StatusOr<ModelSpec> ReadSpec(const Checkpoint& checkpoint,
                                   const Family& family);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_FAMILY_H_
