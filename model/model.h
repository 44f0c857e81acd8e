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
#include "model/format/checkpoint.h"
#include "model/rope_table.h"
#include "model/spec.h"
#include "model/weights.h"
#include "simd/context.h"

namespace lanewise {

class Model {
 public:
  // Reads the spec and packs the weights, in parallel on the context's
  // threads. The checkpoint is not needed afterwards.
  static absl::StatusOr<std::unique_ptr<const Model>> Load(
      const Checkpoint& checkpoint, const Context& context,
      const LoadProgress& progress);

  const ModelSpec& spec() const { return spec_; }
  const Weights& weights() const { return weights_; }
  const RopeTable& rope(size_t index) const { return ropes_[index]; }

  // What loading ignored or took from the tensors; one line each.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  Model() = default;

  ModelSpec spec_;
  Weights weights_;
  std::vector<RopeTable> ropes_;
  std::vector<std::string> notices_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_MODEL_H_
