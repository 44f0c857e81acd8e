// One tensor of a checkpoint on its way into a slot: its type and shape
// checked against the spec, its rows in the order that the kernels want.
#ifndef LANEWISE_MODEL_TENSOR_SOURCE_H_
#define LANEWISE_MODEL_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/spec.h"
#include "simd/types.h"

namespace lanewise {

class TensorSource {
 public:
  // `layer`: which layer's sizes the rule's shape speaks of. INVALID_ARGUMENT
  // names the file, the tensor, the shape expected and the one found.
  static absl::StatusOr<TensorSource> Create(const Tensor& tensor,
                                             const TensorRule& rule, bool gguf,
                                             const ModelSpec& spec,
                                             std::optional<size_t> layer);

  const Tensor& tensor() const { return *tensor_; }
  DType type() const { return tensor_->type; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }

  // Appends the addresses of the rows. They live as long as this object and
  // the checkpoint.
  absl::Status AppendRows(std::vector<const uint8_t*>* rows);

  // All elements in row order, as float.
  absl::StatusOr<std::vector<float>> DecodeAll();

 private:
  TensorSource() = default;
  absl::Status Transpose();
  size_t SourceRow(size_t row) const;

  const Tensor* tensor_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  bool transposed_ = false;
  size_t paired_head_dim_ = 0;  // > 0: rows are in rotary pairs
  std::vector<uint8_t> owned_;  // the transposed bytes
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TENSOR_SOURCE_H_
