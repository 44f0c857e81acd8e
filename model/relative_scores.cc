#include "model/relative_scores.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lanewise {

absl::Status RelativeScores::Reserve(const ModelSpec& spec, size_t rows) {
  size_t heads = 0;
  for (const LayerSpec& layer : spec.layers) {
    heads = std::max(heads, layer.attention.heads);
  }
  const size_t table = 2 * spec.layers.front().attention.disentangled->span;
  const size_t floats = rows * heads * table;
  if (floats <= floats_) return absl::OkStatus();
  floats_ = 0;
  of_queries_ = hwy::AllocateAligned<float>(floats);
  of_keys_ = hwy::AllocateAligned<float>(floats);
  if (of_queries_ == nullptr || of_keys_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "relative positions: no memory for ", rows, " rows of ", heads,
        " heads and ", table, " positions; use a smaller batch"));
  }
  floats_ = floats;
  return absl::OkStatus();
}

void RelativeScores::Compute(const Context& context,
                             const AttentionSpec& attention,
                             const RelativePositions& positions,
                             const RelativeProjection& projection,
                             const Rows& rows,
                             absl::Span<const AttentionSequence> sequences,
                             Activations* activations) {
  positions_ = &positions;
  rows_ = rows;
  sequences_ = sequences;
  heads_ = attention.heads;
  table_rows_ = 2 * attention.disentangled->span;
  scale_ = attention.scale;
  relative_keys_ = !projection.keys.empty();
  relative_queries_ = !projection.queries.empty();
  const size_t dim = attention.head_dim;
  const auto multiply = [&](const std::vector<PackedMatrix>& matrices,
                            const float* data, float* out) {
    for (size_t head = 0; head < matrices.size(); ++head) {
      activations->Prepare(context, data + head * dim, rows.stride, rows.count,
                           dim, Representation::kF32);
      MatMul(context, *activations, ActivationType::kF32, matrices[head],
             out + head * table_rows_, heads_ * table_rows_);
    }
  };
  multiply(projection.keys, rows.data, of_queries_.get());
  multiply(projection.queries, rows.data + attention.query_width(),
           of_keys_.get());
}

void RelativeScores::Fill(size_t sequence, size_t head, size_t row,
                          size_t first_key, float* bias) const {
  const AttentionSequence& queries = sequences_[sequence];
  const size_t first =
      static_cast<size_t>(queries.q - rows_.data) / rows_.stride;
  const int64_t far = positions_->far();
  const float* of_query = Products(of_queries_, first + row, head);
  const size_t keys = std::min(kKeysPerPage, queries.keys - first_key);
  int64_t distance =
      static_cast<int64_t>(row) - static_cast<int64_t>(first_key);
  for (size_t j = 0; j < keys; ++j, --distance) {
    const size_t at =
        positions_
            ->rows[static_cast<size_t>(std::clamp(distance, -far, far) + far)];
    const float by_key = relative_keys_ ? of_query[at] * scale_ : 0.0f;
    const float by_query =
        relative_queries_
            ? Products(of_keys_, first + first_key + j, head)[at] * scale_
            : 0.0f;
    bias[j] = by_key + by_query;
  }
  std::fill(bias + keys, bias + kKeysPerPage, 0.0f);
}

}  // namespace lanewise
