// What a family file provides: readers that turn a config.json or GGUF
// metadata into a ModelSpec, and the table of its tensors. Nothing else of a
// model is code.
//
// Adding an architecture: one file here, its name in BUILD (which says what the
// file defines), one conformance case.
#ifndef LANEWISE_MODEL_FAMILIES_FAMILY_H_
#define LANEWISE_MODEL_FAMILIES_FAMILY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/checkpoint.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// Where a tensor goes. Slots of layers are filled once per layer, those of
// experts once per expert.
enum class Slot : uint8_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kTokenTypeEmbedding,
  kClassToken,         // the row before an image's patches: PatchSpec
  kPatches,            // from a patch to the model's width
  kRelativeBias,       // [buckets, heads], of the stack
  kRelativeEmbedding,  // [2 * span, width], of the stack: DisentangledSpec
  kRelativeNorm,
  kConvolution,
  kConvolutionNorm,
  kEmbeddingIn,   // from the embedding's width to the model's
  kEmbeddingOut,  // and back, before the head
  kEmbeddingNorm,
  kAudioConv1,  // AudioStemSpec
  kAudioConv2,
  kFinalNorm,
  kHeadDense,  // HeadSpec::transform
  kHeadNorm,
  kHead,
  kRopeFactors,  // GGUF's rope_freqs: RopeSpec::frequency_factors
  kRopeShortFactors,
  kRopeLongFactors,
  kAttentionInputNorm,
  kAttentionOutputNorm,
  kAttentionAfterNorm,
  kQuery,
  kKey,
  kValue,
  kQkv,  // query, key and value rows in one tensor
  kQueryNorm,
  kKeyNorm,
  kSinks,
  kRelativeQuery,  // DisentangledSpec without shared projections
  kRelativeKey,
  kAttentionOutput,
  kCrossInputNorm,
  kCrossOutputNorm,
  kCrossAfterNorm,
  kCrossQuery,
  kCrossKey,
  kCrossValue,
  kCrossKeyValue,  // key and value rows in one tensor
  kCrossOutput,
  kFfnInputNorm,
  kFfnOutputNorm,
  kFfnAfterNorm,
  kGate,
  kUp,
  kGateUp,  // gate and up rows in one tensor
  kDown,
  kRouter,
  kExpertGate,
  kExpertUp,
  kExpertGateUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedWeight,  // the gate of the shared expert's output
  kIgnored,       // known and not needed
  kCount,
};

// Sizes that shapes are made of.
enum class Dim : uint8_t {
  kOne,
  kVocab,
  kPositions,
  kTokenTypes,
  kRelativeBuckets,
  kRelativeHeads,  // heads of the stack's first layer
  kRelativeRows,   // 2 * DisentangledSpec::span
  kWidth,
  kPatch,  // PatchSpec::values(): [channels, size, size]
  kEmbeddingWidth,
  kInputWidth,     // of positions, token types and the embedding's norm
  kConvolved,      // what a row of the convolution reads: [width, kernel]
  kMemoryWidth,    // of the encoder's rows
  kHeadTransform,  // HeadTransformSpec::width
  kHeadInput,      // what the output matrix reads
  kHeadOutputs,
  kConv1,  // taps * channels of an audio stem's first convolution
  kConv2,  // of the second
  kHeads,
  kKvHeads,
  kHeadDim,
  kQuery,
  kKey,
  kValue,
  kQkv,
  kAttentionOutput,
  kCrossQuery,
  kCrossKey,
  kCrossValue,
  kCrossKeyValue,
  kCrossOutput,
  kFfn,
  kGateUp,
  kExperts,
  kSharedFfn,
  kHalfRotary,
};

// How a tensor's rows become the rows of its slot.
enum class TensorLayout : uint8_t {
  kPlain,              // [rows, cols]
  kTransposed,         // [cols, rows]: GPT-2's Conv1D
  kTransposedEvenOdd,  // the same; gate rows are the even ones, up rows the odd
  kRotaryPairs,  // GGUF: rows of a head permuted so that rotated pairs are
                 // neighbours; put back to halves
  kKvGroups,     // for each key/value head: its query heads, its key, its value
  kAddOne,       // the weight is 1 + what is stored
  kBatchOfOne,   // [1, rows, cols]
  kConvolution,  // [rows, channels, …]: the dimensions of `cols` one by one
  kConv1d,       // [rows, channels, taps]; columns become [taps, channels]
  // Of a tensor of query, key and value rows of cross-attention, the first, or
  // the others: two rules name it.
  kCrossQueryOfQkv,
  kCrossKeyValueOfQkv,
};

// For which HeadTasks a rule counts.
constexpr uint32_t TaskBit(HeadTask task) {
  return uint32_t{1} << static_cast<uint32_t>(task);
}
inline constexpr uint32_t kAllTasks = ~uint32_t{0};

enum class Presence : uint8_t {
  kRequired,  // where the spec has the slot
  kOptional,
};

// One tensor, in both kinds of files. The first `{}` in a name is the number of
// the layer, the second that of the expert; an expert's slot under a name
// without a second one is stacked: [experts, rows, cols]. An empty name: not in
// that kind. Matrices are [rows, cols]; vectors (biases, norms) have cols kOne.
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
  uint32_t tasks = kAllTasks;  // where several heads' tensors share a slot
};

// Whether a file has a tensor of that name.
using HasTensor = absl::FunctionRef<bool(absl::string_view name)>;

struct Family {
  absl::string_view name;
  std::vector<absl::string_view> model_types;  // config.json's model_type
  std::vector<absl::string_view> gguf_architectures;  // general.architecture
  absl::StatusOr<ModelSpec> (*from_config)(const nlohmann::json& config,
                                           absl::string_view file);
  // Null without gguf_architectures.
  absl::StatusOr<ModelSpec> (*from_metadata)(const Metadata& metadata);
  std::vector<TensorRule> tensors;
  // Prefixes that names in a folder may have, tried in this order.
  std::vector<absl::string_view> prefixes = {""};
  // Of an encoder-decoder: the encoder's tensors (`tensors` are the decoder's).
  // A spec of such a family that has no encoder is the encoder alone.
  std::vector<TensorRule> encoder_tensors = {};
  // Null, or adds to what from_metadata gave what only the names of a GGUF
  // file's tensors tell.
  void (*from_tensors)(HasTensor has, ModelSpec* spec) = nullptr;

  // The tensors of the stack that `spec` is.
  const std::vector<TensorRule>& TensorsOf(const ModelSpec& spec) const {
    const bool encoder = spec.encoder.empty() && !encoder_tensors.empty();
    return encoder ? encoder_tensors : tensors;
  }
};

// All families.
absl::Span<const Family* const> Families();

// The family of a checkpoint, by its model_type or general.architecture. The
// error for an unknown one names it and lists those that are known.
absl::StatusOr<const Family*> FindFamily(const Checkpoint& checkpoint);

// The family of a model_type, for specs and tensors that come from no file;
// null when there is none.
const Family* FamilyOfModelType(absl::string_view model_type);

// The spec of a checkpoint by its family's reader; sizes are checked against
// the limits of model/limits.h.
absl::StatusOr<ModelSpec> ReadSpec(const Checkpoint& checkpoint,
                                   const Family& family);

// Whether a model can have such a spec: sizes within the limits, nothing empty,
// every reference to a part that is there. Errors begin with `name`.
absl::Status CheckSpec(const ModelSpec& spec, absl::string_view name);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_FAMILY_H_
