// The weights of a model, packed for the kernels: what a ModelSpec names,
// loaded from a checkpoint by its family's tensor table.
#ifndef LANEWISE_MODEL_WEIGHTS_H_
#define LANEWISE_MODEL_WEIGHTS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/spec.h"
#include "simd/context.h"
#include "simd/matmul.h"
#include "simd/types.h"

namespace lanewise {

// A linear map [rows, cols], y = W x + bias. Several matrices with the same
// input (query, key, value; gate, up) are one projection whose outputs lie one
// after the other; neighbours of one type are one packed matrix.
struct Projection {
  std::vector<PackedMatrix> parts;
  std::vector<float> bias;  // [rows], or empty

  size_t rows() const;
  size_t bytes() const;
};

struct NormWeights {
  std::vector<float> weight;  // empty: none
  std::vector<float> bias;
};

struct SublayerNormWeights {
  NormWeights input, output, after;
};

struct FfnWeights {
  Projection in;   // [gate + up, width], or [up, width]
  Projection out;  // [width, ffn]

  size_t bytes() const { return in.bytes() + out.bytes(); }
};

struct MoeWeights {
  Projection router;  // [experts, width]
  std::vector<FfnWeights> experts;
  FfnWeights shared;
  Projection shared_weight;  // [1, width]
};

struct CrossAttentionWeights {
  SublayerNormWeights norms;
  Projection query;      // [query, width]
  Projection key_value;  // [key + value, width of the encoder]
  Projection output;     // [width, heads * value_dim]
};

struct LayerWeights {
  SublayerNormWeights attention_norms;
  Projection qkv;                           // [query + key + value, width]
  std::vector<float> query_norm, key_norm;  // [head_dim] or [heads * head_dim]
  std::vector<float> sinks;                 // [heads]
  Projection relative_query;                // [heads * head_dim, width]
  Projection relative_key;                  // the same
  Projection attention_output;              // [width, heads * value_dim]
  CrossAttentionWeights cross;
  SublayerNormWeights ffn_norms;
  FfnWeights ffn;  // without parts for a mixture of experts
  MoeWeights moe;
};

struct Weights {
  // [vocab, token_width()]; an encoder-decoder's stacks may share it. Null
  // where the input is not tokens.
  std::shared_ptr<const PackedMatrix> token_embedding;
  Projection embedding_in;                // [width, token_width()]
  Projection embedding_out;               // [token_width(), width]
  std::vector<float> position_embedding;  // [positions, input_width()]: learned
  std::vector<float> token_type_embedding;  // [types, input_width()]
  std::vector<float> class_token;           // [width]
  Projection patches;                       // [width, PatchSpec::values()]
  std::vector<float> relative_bias;         // [buckets, heads]
  std::vector<float> relative_embedding;    // [2 * span, width]
  NormWeights relative_norm;
  Projection convolution;  // [width, width * kernel]: kernel rows a channel
  NormWeights convolution_norm;
  NormWeights embedding_norm;
  // Columns tap by tap: [width, kConv1dTaps * bands] and * width.
  Projection audio_conv1, audio_conv2;
  // One a layer; of a group of layers only the first has any.
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Projection head_dense;
  NormWeights head_norm;
  Projection head;  // without parts when tied; the bias may be there then too

  size_t bytes() const;  // of the packed matrices
};

struct LoadedWeights {
  ModelSpec spec;  // as given, with what only the tensors tell filled in:
                   // biases, a tied head, frequency factors
  Weights weights;
  std::optional<Weights> encoder;    // of spec.encoder
  std::vector<std::string> notices;  // one line each: what was ignored or
                                     // taken from the tensors
};

using LoadProgress = std::function<void(size_t done, size_t total)>;

struct LoadOptions {
  LoadProgress progress;  // called per layer; may be empty
  // What float matrices become (model/requantize.h); absent: as stored.
  std::optional<DType> weights;
};

// Errors name the file, the tensor, what was expected and what was found;
// nothing stays allocated.
absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint,
                                          const Family& family, ModelSpec spec,
                                          const Context& context,
                                          const LoadOptions& options);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_WEIGHTS_H_
