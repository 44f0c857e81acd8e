// A model ready to run: its spec and packed weights. Immutable, so any number
// of executors may share it.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto checkpoint, Checkpoint::Open(path));
//   LANEWISE_ASSIGN_OR_RETURN(auto model, Model::Load(*checkpoint, context,
//   {}));
#ifndef LANEWISE_MODEL_MODEL_H_
#define LANEWISE_MODEL_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/disentangled.h"
#include "model/format/checkpoint.h"
#include "model/rope_table.h"
#include "model/spec.h"
#include "model/weights.h"
#include "simd/context.h"

namespace lanewise {

// What a bucket table of relative positions (RelativeBiasSpec) adds to scores,
// by distance.
struct DistanceBias {
  size_t max_distance = 0;    // beyond, the bias is that of this distance
  std::vector<float> values;  // [heads, 2 * max_distance + 1]: from
                              // -max_distance (keys before the row) on; empty:
                              // none
};

class Model {
 public:
  // Reads the spec and packs the weights, in parallel on the context's
  // threads. The checkpoint is not needed afterwards.
  static absl::StatusOr<std::unique_ptr<const Model>> Load(
      const Checkpoint& checkpoint, const Context& context,
      const LoadOptions& options);

  // The same from a spec that the caller has, with the tensors that `family`
  // names. INVALID_ARGUMENT for a spec that no model can have.
  static absl::StatusOr<std::unique_ptr<const Model>> FromSpec(
      ModelSpec spec, const Family& family, const Checkpoint& checkpoint,
      const Context& context, const LoadOptions& options);

  const ModelSpec& spec() const { return spec_; }
  const Weights& weights() const { return weights_; }
  const RopeTable& rope(size_t index) const { return ropes_[index]; }
  const DistanceBias& distance_bias() const { return distance_bias_; }
  const RelativePositions& relative_positions() const {
    return relative_positions_;
  }
  const RelativeProjection& relative_projection(size_t layer) const {
    return relative_positions_.projections[layer_weights_[layer]];
  }

  // The weights that layer `layer` runs with.
  const LayerWeights& layer_weights(size_t layer) const {
    return weights_.layers[layer_weights_[layer]];
  }

  // Of an encoder-decoder, whose decoder this is; else null.
  const Model* encoder() const { return encoder_.get(); }

  // Packed matrices, of both stacks; what they share counts once.
  size_t weight_bytes() const;

  // What loading ignored or took from the tensors; one line each.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  Model(ModelSpec spec, Weights weights);

  ModelSpec spec_;
  Weights weights_;
  std::vector<RopeTable> ropes_;
  std::vector<size_t> layer_weights_;  // of each layer: index into weights_
  DistanceBias distance_bias_;
  RelativePositions relative_positions_;
  std::unique_ptr<const Model> encoder_;
  std::vector<std::string> notices_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_MODEL_H_
