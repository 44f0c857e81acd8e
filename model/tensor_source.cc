#include "model/tensor_source.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

size_t SizeOf(Dim dim, const ModelSpec& spec, std::optional<size_t> layer) {
  const LayerSpec none;
  const LayerSpec& sizes = layer.has_value() ? spec.layers[*layer] : none;
  const AttentionSpec& attention = sizes.attention;
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kVocab:
      return spec.vocab_size;
    case Dim::kPositions:
      return spec.max_positions + spec.positions.offset;
    case Dim::kWidth:
      return spec.width;
    case Dim::kQuery:
      return attention.query_width();
    case Dim::kKey:
      return attention.key_width();
    case Dim::kValue:
      return attention.value_width();
    case Dim::kQkv:
      return attention.query_width() + attention.key_width() +
             attention.value_width();
    case Dim::kAttentionOutput:
      return attention.output_width();
    case Dim::kFfn:
      return sizes.ffn.width;
    case Dim::kHalfRotary:
      return spec.ropes.empty() ? 0 : spec.ropes.front().rotary_dim / 2;
  }
  return 0;
}

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<TensorSource> TensorSource::Create(const Tensor& tensor,
                                                  const TensorRule& rule,
                                                  bool gguf,
                                                  const ModelSpec& spec,
                                                  std::optional<size_t> layer) {
  TensorSource source;
  source.tensor_ = &tensor;
  source.rows_ = SizeOf(rule.rows, spec, layer);
  source.cols_ = SizeOf(rule.cols, spec, layer);
  const TensorLayout layout = gguf ? rule.gguf_layout : rule.layout;
  source.transposed_ = layout == TensorLayout::kTransposed && !rule.bias;

  std::vector<uint64_t> expected = {source.rows_, source.cols_};
  if (source.transposed_) std::swap(expected[0], expected[1]);
  if (rule.cols == Dim::kOne) expected.pop_back();
  if (tensor.shape != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.file, ": tensor ", tensor.name, ": expected shape ",
                     ShapeText(expected),
                     " from the model's configuration, "
                     "found ",
                     ShapeText(tensor.shape)));
  }
  const DTypeTraits& traits = Traits(tensor.type);
  if (traits.decode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.file, ": tensor ", tensor.name,
                     ": expected a weight type, found ", traits.name));
  }
  if (layout == TensorLayout::kRotaryPairs &&
      spec.ropes.front().pairing == RopePairing::kHalves) {
    source.paired_head_dim_ = spec.layers[*layer].attention.head_dim;
  }
  return source;
}

// Where row `row` (head, half j, element i) lies in the file: (head, i, j).
size_t TensorSource::SourceRow(size_t row) const {
  if (paired_head_dim_ == 0) return row;
  const size_t half = paired_head_dim_ / 2;
  const size_t within = row % paired_head_dim_;
  return row - within + (within % half) * 2 + within / half;
}

absl::Status TensorSource::Transpose() {
  if (!owned_.empty() || rows_ * cols_ == 0) return absl::OkStatus();
  const DTypeTraits& traits = Traits(type());
  if (traits.block_size != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor_->file, ": tensor ", tensor_->name,
                     ": expected a float type for a transposed matrix, found ",
                     traits.name));
  }
  const size_t bytes = traits.block_bytes;
  owned_.resize(rows_ * cols_ * bytes);
  for (size_t row = 0; row < rows_; ++row) {
    for (size_t col = 0; col < cols_; ++col) {
      std::memcpy(&owned_[(row * cols_ + col) * bytes],
                  &tensor_->data[(col * rows_ + row) * bytes], bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status TensorSource::AppendRows(std::vector<const uint8_t*>* rows) {
  if (transposed_) LANEWISE_RETURN_IF_ERROR(Transpose());
  const uint8_t* base = transposed_ ? owned_.data() : tensor_->data.data();
  const size_t stride = BytesOf(type(), cols_);
  for (size_t row = 0; row < rows_; ++row) {
    rows->push_back(base + SourceRow(row) * stride);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> TensorSource::DecodeAll() {
  std::vector<const uint8_t*> rows;
  LANEWISE_RETURN_IF_ERROR(AppendRows(&rows));
  const DTypeTraits& traits = Traits(type());
  if (cols_ % traits.block_size != 0) {
    // A vector of a block type: its one row is the whole tensor.
    return absl::InvalidArgumentError(
        absl::StrCat(tensor_->file, ": tensor ", tensor_->name,
                     ": expected a float type, found ", traits.name));
  }
  std::vector<float> values(rows_ * cols_);
  for (size_t row = 0; row < rows_; ++row) {
    traits.decode(rows[row], cols_, values.data() + row * cols_);
  }
  return values;
}

}  // namespace lanewise
