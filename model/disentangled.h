// The relative positions of disentangled attention (DisentangledSpec), ready
// for scores: their table after its norm, projected by each layer's matrices
// once, when the model is loaded.
#ifndef LANEWISE_MODEL_DISENTANGLED_H_
#define LANEWISE_MODEL_DISENTANGLED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/spec.h"
#include "model/weights.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

// Of one layer, one matrix a head: [2 * span, head_dim]. Without parts where
// the scores have no such term.
struct RelativeProjection {
  std::vector<PackedMatrix> keys;
  std::vector<PackedMatrix> queries;
};

struct RelativePositions {
  // Row of the table for distance = query position − key position, from
  // -far() to far(); beyond, that of the end.
  std::vector<uint32_t> rows;
  std::vector<RelativeProjection> projections;  // as Weights::layers

  int64_t far() const { return static_cast<int64_t>(rows.size() / 2); }
};

// Empty for a model without. In f32 whatever the weights' type is, so that no
// bit depends on an executor's options. RESOURCE_EXHAUSTED without memory.
absl::StatusOr<RelativePositions> ProjectRelativePositions(
    const ModelSpec& spec, const Weights& weights, const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_DISENTANGLED_H_
