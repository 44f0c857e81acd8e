#include "model/tensor_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/printable.h"
#include "model/slots.h"
#include "simd/convolution.h"
#include "simd/quantize.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kConvertElements = size_t{1} << 16;  // of one task

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The dimensions that make up the columns of a convolution in a file, in place
// of the last one.
void SplitColumns(Dim cols, const ModelSpec& spec,
                  std::vector<uint64_t>* shape) {
  shape->pop_back();
  if (cols == Dim::kConvolved) {
    shape->insert(shape->end(), {spec.width, spec.convolution->kernel});
  } else if (cols == Dim::kConv1) {
    shape->insert(shape->end(), {spec.audio_stem->bands, kConv1dTaps});
  } else if (cols == Dim::kConv2) {
    shape->insert(shape->end(), {spec.width, kConv1dTaps});
  } else {
    const PatchSpec& patches = *spec.patches;
    shape->insert(shape->end(), {patches.channels, patches.size, patches.size});
  }
}

}  // namespace

absl::StatusOr<TensorSource> TensorSource::Create(const Tensor& tensor,
                                                  const TensorRule& rule,
                                                  bool gguf,
                                                  const ModelSpec& spec,
                                                  const TensorPlace& place) {
  TensorSource source;
  source.tensor_ = &tensor;
  source.type_ = tensor.type;
  source.layer_ = place.layer;
  source.stacked_ = place.stacked;
  source.rows_ = SizeOf(rule.rows, spec, place.layer);
  source.cols_ = SizeOf(rule.cols, spec, place.layer);
  source.layout_ = gguf ? rule.gguf_layout : rule.layout;
  source.transposed_ =
      !rule.bias && (source.layout_ == TensorLayout::kTransposed ||
                     source.layout_ == TensorLayout::kTransposedEvenOdd);
  if (source.layout_ == TensorLayout::kRotaryPairs &&
      spec.ropes.front().pairing != RopePairing::kHalves) {
    source.layout_ = TensorLayout::kPlain;
  }

  // One of two parts of a tensor: the rows before or after.
  const bool first_part = source.layout_ == TensorLayout::kCrossQueryOfQkv;
  const bool second_part = source.layout_ == TensorLayout::kCrossKeyValueOfQkv;
  size_t other_rows = 0;
  if (first_part) other_rows = SizeOf(Dim::kCrossKeyValue, spec, place.layer);
  if (second_part) other_rows = SizeOf(Dim::kCrossQuery, spec, place.layer);

  std::vector<uint64_t> expected = {source.rows_ + other_rows, source.cols_};
  if (source.transposed_) std::swap(expected[0], expected[1]);
  const bool conv1d = source.layout_ == TensorLayout::kConv1d && !rule.bias;
  if (conv1d) source.taps_ = kConv1dTaps;
  if (conv1d || (source.layout_ == TensorLayout::kConvolution && !rule.bias)) {
    SplitColumns(rule.cols, spec, &expected);
  }
  if (rule.cols == Dim::kOne) expected.pop_back();
  if (source.layout_ == TensorLayout::kBatchOfOne) {
    expected.insert(expected.begin(), 1);
  }
  if (place.stacked) {
    expected.insert(expected.begin(), SizeOf(Dim::kExperts, spec, place.layer));
  }
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
  source.size_ = tensor.data.size();
  if (place.stacked) {
    source.size_ = BytesOf(tensor.type, source.rows_ * source.cols_);
    source.begin_ = *place.expert * source.size_;
  }
  if (first_part || second_part) {
    const size_t row_bytes = BytesOf(tensor.type, source.cols_);
    source.size_ = source.rows_ * row_bytes;
    if (second_part) source.begin_ = other_rows * row_bytes;
  }
  return source;
}

// Where row `row` of the slot lies in the file.
size_t TensorSource::SourceRow(size_t row) const {
  switch (layout_) {
    case TensorLayout::kRotaryPairs: {
      // (head, half j, element i) lies at (head, i, j).
      const size_t head_dim = layer_->attention.head_dim;
      const size_t half = head_dim / 2;
      const size_t within = row % head_dim;
      return row - within + (within % half) * 2 + within / half;
    }
    case TensorLayout::kTransposedEvenOdd:
      return row < rows_ / 2 ? 2 * row : 2 * (row - rows_ / 2) + 1;
    case TensorLayout::kKvGroups:
      return SourceRowInGroups(row);
    default:
      return row;
  }
}

size_t TensorSource::SourceRowInGroups(size_t row) const {
  const AttentionSpec& attention = layer_->attention;
  const size_t query =
      attention.heads / attention.kv_heads * attention.head_dim;
  const size_t group = query + attention.head_dim + attention.value_dim;
  if (row < attention.query_width()) return row / query * group + row % query;
  row -= attention.query_width();
  if (row < attention.key_width()) {
    return row / attention.head_dim * group + query + row % attention.head_dim;
  }
  row -= attention.key_width();
  return row / attention.value_dim * group + query + attention.head_dim +
         row % attention.value_dim;
}

absl::StatusOr<TensorSource::Bytes> TensorSource::Allocate(size_t size) const {
  Bytes bytes(new (std::nothrow) uint8_t[std::max<size_t>(size, 1)]);
  if (bytes != nullptr) return bytes;
  return absl::ResourceExhaustedError(
      absl::StrCat(tensor_->file, ": tensor ", Printable(tensor_->name),
                   ": no memory for its ", size, " bytes"));
}

absl::Status TensorSource::Fetch(const Checkpoint& checkpoint) {
  if (bytes_ != nullptr) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(bytes_, Allocate(size_));
  for (size_t done = 0; done < size_; done += kReadBytes) {
    const size_t count = std::min(kReadBytes, size_ - done);
    const absl::Status status = checkpoint.Read(
        *tensor_, begin_ + done, absl::MakeSpan(bytes_.get() + done, count));
    if (!status.ok()) {
      Drop();
      return status;
    }
  }
  return transposed_ || taps_ > 0 ? Transpose() : absl::OkStatus();
}

// Of a convolution the channels and taps of each row, else rows and columns.
absl::Status TensorSource::Transpose() {
  const DTypeTraits& traits = Traits(type());
  if (traits.block_size != 1) {
    Drop();
    return absl::InvalidArgumentError(
        absl::StrCat(tensor_->file, ": tensor ", tensor_->name,
                     ": expected a float type for a transposed matrix, found ",
                     traits.name));
  }
  const size_t bytes = traits.block_bytes;
  LANEWISE_ASSIGN_OR_RETURN(Bytes turned, Allocate(rows_ * cols_ * bytes));
  if (taps_ > 0) {
    ReorderConv1dWeights(bytes_.get(), bytes, {cols_ / taps_, taps_}, rows_,
                         turned.get());
  }
  for (size_t row = 0; taps_ == 0 && row < rows_; ++row) {
    for (size_t col = 0; col < cols_; ++col) {
      std::memcpy(&turned[(row * cols_ + col) * bytes],
                  &bytes_[(col * rows_ + row) * bytes], bytes);
    }
  }
  bytes_ = std::move(turned);
  return absl::OkStatus();
}

// Rows [begin, end) of the copy, in another type.
absl::Status TensorSource::EncodeRows(size_t begin, size_t end, DType type,
                                      uint8_t* out) const {
  const size_t from = BytesOf(type_, cols_), to = BytesOf(type, cols_);
  std::vector<float> values(cols_);
  for (size_t row = begin; row < end; ++row) {
    Traits(type_).decode(bytes_.get() + row * from, cols_, values.data());
    const size_t at = FirstNonFinite(values.data(), cols_);
    if (at < cols_) {
      return absl::InvalidArgumentError(absl::StrCat(
          tensor_->file, ": tensor ", Printable(tensor_->name), ": row ", row,
          ", column ", at, ": expected finite values, found ",
          std::isnan(values[at]) ? "NaN" : "an infinity",
          ": the model is damaged, get its files again"));
    }
    Encode(type, values.data(), cols_, out + row * to);
  }
  return absl::OkStatus();
}

absl::Status TensorSource::Convert(DType type, const Checkpoint& checkpoint,
                                   const Context& context) {
  if (type == type_) return absl::OkStatus();
  LANEWISE_RETURN_IF_ERROR(Fetch(checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(Bytes encoded,
                            Allocate(rows_ * BytesOf(type, cols_)));
  const size_t rows_at_a_time = std::max<size_t>(kConvertElements / cols_, 1);
  const size_t tasks = (rows_ + rows_at_a_time - 1) / rows_at_a_time;
  std::vector<absl::Status> statuses(tasks);
  context.ParallelFor(tasks, [&](size_t task, size_t) {
    const size_t begin = task * rows_at_a_time;
    statuses[task] = EncodeRows(begin, std::min(begin + rows_at_a_time, rows_),
                                type, encoded.get());
  });
  for (const absl::Status& status : statuses) LANEWISE_RETURN_IF_ERROR(status);
  bytes_ = std::move(encoded);
  type_ = type;
  return absl::OkStatus();
}

absl::Status TensorSource::AppendRows(const Checkpoint& checkpoint,
                                      std::vector<const uint8_t*>* rows) {
  LANEWISE_RETURN_IF_ERROR(Fetch(checkpoint));
  const size_t stride = BytesOf(type(), cols_);
  for (size_t row = 0; row < rows_; ++row) {
    rows->push_back(bytes_.get() + SourceRow(row) * stride);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> TensorSource::DecodeAll(
    const Checkpoint& checkpoint) {
  const DTypeTraits& traits = Traits(type());
  if (cols_ % traits.block_size != 0) {
    // A vector of a block type: its one row is the whole tensor.
    return absl::InvalidArgumentError(
        absl::StrCat(tensor_->file, ": tensor ", tensor_->name,
                     ": expected a float type, found ", traits.name));
  }
  std::vector<const uint8_t*> rows;
  LANEWISE_RETURN_IF_ERROR(AppendRows(checkpoint, &rows));
  std::vector<float> values(rows_ * cols_);
  for (size_t row = 0; row < rows_; ++row) {
    traits.decode(rows[row], cols_, values.data() + row * cols_);
  }
  Drop();
  if (layout_ == TensorLayout::kAddOne) {
    for (float& value : values) value += 1.0f;
  }
  return values;
}

}  // namespace lanewise
