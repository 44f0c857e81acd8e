#include "model/disentangled.h"

#include <algorithm>
#include <utility>

#include "model/position_tables.h"
#include "simd/norm.h"
#include "simd/status_macros.h"
#include "simd/types.h"

namespace lanewise {
namespace {

std::vector<uint32_t> RowsByDistance(const DisentangledSpec& spec) {
  const auto span = static_cast<int64_t>(spec.span);
  const auto max_distance = static_cast<int64_t>(spec.max_distance);
  // Both ends of the table are reached at max_distance, or one behind it.
  const int64_t far = std::max(span, max_distance) + 1;
  std::vector<uint32_t> rows;
  rows.reserve(static_cast<size_t>(2 * far + 1));
  for (int64_t distance = -far; distance <= far; ++distance) {
    const int64_t bucket =
        spec.buckets > 0
            ? LogBucket(distance, static_cast<int64_t>(spec.buckets),
                        max_distance)
            : distance;
    rows.push_back(static_cast<uint32_t>(
        std::clamp(bucket + span, int64_t{0}, 2 * span - 1)));
  }
  return rows;
}

// Projects rows of the table, in f32.
class TableProjector {
 public:
  TableProjector(const Context& context, std::vector<float> table, size_t rows,
                 size_t width)
      : context_(context),
        table_(std::move(table)),
        rows_(rows),
        width_(width) {}

  absl::Status Prepare() {
    LANEWISE_RETURN_IF_ERROR(activations_.Reserve(rows_, width_));
    activations_.Prepare(context_, table_.data(), width_, rows_, width_,
                         Representation::kF32);
    return absl::OkStatus();
  }

  // [rows, projection.rows()]
  std::vector<float> Project(const Projection& projection) const {
    const size_t columns = projection.rows();
    std::vector<float> out(rows_ * columns);
    size_t column = 0;
    for (const PackedMatrix& part : projection.parts) {
      MatMulEpilogue epilogue;
      if (!projection.bias.empty()) {
        epilogue.bias = projection.bias.data() + column;
      }
      MatMul(context_, activations_, ActivationType::kF32, part,
             out.data() + column, columns, epilogue);
      column += part.rows();
    }
    return out;
  }

  // One matrix a head out of the columns of `projected` from `column` on.
  absl::StatusOr<std::vector<PackedMatrix>> Heads(
      const std::vector<float>& projected, size_t column,
      const AttentionSpec& attention) const {
    const size_t stride = projected.size() / rows_;
    std::vector<PackedMatrix> heads;
    for (size_t head = 0; head < attention.heads; ++head) {
      std::vector<const uint8_t*> rows;
      for (size_t row = 0; row < rows_; ++row) {
        rows.push_back(reinterpret_cast<const uint8_t*>(
            projected.data() + row * stride + column +
            head * attention.head_dim));
      }
      LANEWISE_ASSIGN_OR_RETURN(
          PackedMatrix matrix,
          Pack(context_, DType::kF32, attention.head_dim, rows));
      heads.push_back(std::move(matrix));
    }
    return heads;
  }

 private:
  const Context& context_;
  const std::vector<float> table_;
  const size_t rows_;
  const size_t width_;
  Activations activations_;
};

absl::StatusOr<RelativeProjection> ProjectLayer(const AttentionSpec& attention,
                                                const LayerWeights& weights,
                                                const TableProjector& table) {
  const DisentangledSpec& spec = *attention.disentangled;
  const bool shared = spec.shared_projections;
  std::vector<float> both;
  if (shared) both = table.Project(weights.qkv);
  RelativeProjection out;
  if (spec.relative_keys) {
    LANEWISE_ASSIGN_OR_RETURN(
        out.keys,
        table.Heads(shared ? both : table.Project(weights.relative_key),
                    shared ? attention.query_width() : 0, attention));
  }
  if (spec.relative_queries) {
    LANEWISE_ASSIGN_OR_RETURN(
        out.queries,
        table.Heads(shared ? both : table.Project(weights.relative_query), 0,
                    attention));
  }
  return out;
}

}  // namespace

absl::StatusOr<RelativePositions> ProjectRelativePositions(
    const ModelSpec& spec, const Weights& weights, const Context& context) {
  RelativePositions out;
  const auto& disentangled = spec.layers.front().attention.disentangled;
  if (!disentangled.has_value()) return out;
  out.rows = RowsByDistance(*disentangled);
  std::vector<float> table = weights.relative_embedding;
  const size_t rows = 2 * disentangled->span;
  if (disentangled->norm.has_value()) {
    const NormWeights& norm = weights.relative_norm;
    for (size_t row = 0; row < rows; ++row) {
      float* x = table.data() + row * spec.width;
      LayerNorm(context.target(), x, norm.weight.data(),
                norm.bias.empty() ? nullptr : norm.bias.data(),
                disentangled->norm->eps, spec.width, x);
    }
  }
  TableProjector projector(context, std::move(table), rows, spec.width);
  LANEWISE_RETURN_IF_ERROR(projector.Prepare());
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    out.projections.emplace_back();
    if (weights.layers[layer].qkv.parts.empty()) continue;  // of a group
    LANEWISE_ASSIGN_OR_RETURN(out.projections.back(),
                              ProjectLayer(spec.layers[layer].attention,
                                           weights.layers[layer], projector));
  }
  return out;
}

}  // namespace lanewise
