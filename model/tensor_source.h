// One tensor of a checkpoint on its way into a slot: its type and shape
// checked against the spec, its rows in the order that the kernels want.
#ifndef LANEWISE_MODEL_TENSOR_SOURCE_H_
#define LANEWISE_MODEL_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/spec.h"
#include "simd/context.h"
#include "simd/types.h"

namespace lanewise {

// Which part of the model a tensor is looked up for.
struct TensorPlace {
  const LayerSpec* layer = nullptr;  // null: outside of layers
  std::optional<size_t> expert;
  bool stacked = false;  // the tensor holds all experts
};

class TensorSource {
 public:
  // INVALID_ARGUMENT names the file, the tensor, the shape expected and the one
  // found.
  static absl::StatusOr<TensorSource> Create(const Tensor& tensor,
                                             const TensorRule& rule, bool gguf,
                                             const ModelSpec& spec,
                                             const TensorPlace& place);

  const Tensor& tensor() const { return *tensor_; }
  DType type() const { return type_; }  // the tensor's, or of Convert
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  bool stacked() const { return stacked_; }  // others read the tensor too

  // The two ways to the values. Both copy the tensor's bytes once, through
  // Checkpoint::Read: DATA_LOSS when the file was cut short since it was
  // opened, RESOURCE_EXHAUSTED without memory for the copy. `checkpoint` is the
  // tensor's own.

  // Appends the addresses of the rows. They live until Drop().
  absl::Status AppendRows(const Checkpoint& checkpoint,
                          std::vector<const uint8_t*>* rows);
  // All elements in row order, as float. Keeps no copy.
  absl::StatusOr<std::vector<float>> DecodeAll(const Checkpoint& checkpoint);

  // Makes the values those of another type (simd/quantize.h), row by row on the
  // context's threads: type() and what AppendRows gives are of `type` then.
  // INVALID_ARGUMENT names the row and the column of a value that is not
  // finite.
  absl::Status Convert(DType type, const Checkpoint& checkpoint,
                       const Context& context);

  // Frees the copy.
  void Drop() { bytes_.reset(); }

 private:
  using Bytes = std::unique_ptr<uint8_t[]>;

  TensorSource() = default;
  absl::StatusOr<Bytes> Allocate(size_t size) const;
  absl::Status Fetch(const Checkpoint& checkpoint);
  absl::Status Transpose();
  absl::Status EncodeRows(size_t begin, size_t end, DType type,
                          uint8_t* out) const;
  size_t SourceRow(size_t row) const;
  size_t SourceRowInGroups(size_t row) const;

  const Tensor* tensor_ = nullptr;
  DType type_ = DType::kF32;
  size_t begin_ = 0;  // byte of the tensor: of this expert's where stacked
  size_t size_ = 0;   // bytes from there
  const LayerSpec* layer_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  TensorLayout layout_ = TensorLayout::kPlain;
  bool transposed_ = false;
  size_t taps_ = 0;  // of a convolution's weights
  bool stacked_ = false;
  Bytes bytes_;  // a copy, transposed where it must be
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TENSOR_SOURCE_H_
