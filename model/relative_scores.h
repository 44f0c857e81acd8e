// What relative positions add to the scores of disentangled attention
// (DisentangledSpec), for one layer at a time:
//
//   bias(i, j) = query i · relative key · scale + key j · relative query ·
//   scale
//
// both with the table's row for the distance i − j, each product of scale and
// their sum rounded once. All rows of the batch are multiplied with the whole
// table first; a tile of scores then only looks them up.
#ifndef LANEWISE_MODEL_RELATIVE_SCORES_H_
#define LANEWISE_MODEL_RELATIVE_SCORES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "hwy/aligned_allocator.h"
#include "model/disentangled.h"
#include "model/spec.h"
#include "simd/attention.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

class RelativeScores : public ScoreBias {
 public:
  // Rows [count, stride]: queries, then keys, of all heads.
  struct Rows {
    const float* data;
    size_t stride;
    size_t count;
  };

  // Makes room for this many rows of a model with such attention.
  // RESOURCE_EXHAUSTED without memory.
  absl::Status Reserve(const ModelSpec& spec, size_t rows);

  // Takes a layer's rows; `sequences` (whose queries are those rows) must live
  // as long as Fill is called. `activations` has room for them.
  void Compute(const Context& context, const AttentionSpec& attention,
               const RelativePositions& positions,
               const RelativeProjection& projection, const Rows& rows,
               absl::Span<const AttentionSequence> sequences,
               Activations* activations);

  void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
            float* bias) const override;

 private:
  using Buffer = hwy::AlignedFreeUniquePtr<float[]>;

  const float* Products(const Buffer& buffer, size_t row, size_t head) const {
    return buffer.get() + (row * heads_ + head) * table_rows_;
  }

  size_t floats_ = 0;
  Buffer of_queries_, of_keys_;  // [rows, heads, table rows]
  const RelativePositions* positions_ = nullptr;
  Rows rows_ = {};
  absl::Span<const AttentionSequence> sequences_;
  size_t heads_ = 0;
  size_t table_rows_ = 0;
  float scale_ = 1.0f;
  bool relative_keys_ = false, relative_queries_ = false;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_RELATIVE_SCORES_H_
