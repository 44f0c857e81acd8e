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
  DType type() const { return tensor_->type; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  bool stacked() const { return stacked_; }  // others read the tensor too

  // Appends the addresses of the rows. They live as long as this object and
  // the checkpoint.
  absl::Status AppendRows(std::vector<const uint8_t*>* rows);

  // All elements in row order, as float.
  absl::StatusOr<std::vector<float>> DecodeAll();

 private:
  TensorSource() = default;
  absl::Status Transpose();
  size_t SourceRow(size_t row) const;
  size_t SourceRowInGroups(size_t row) const;

  const Tensor* tensor_ = nullptr;
  const uint8_t* data_ = nullptr;  // of this expert where they are stacked
  const LayerSpec* layer_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  TensorLayout layout_ = TensorLayout::kPlain;
  bool transposed_ = false;
  bool stacked_ = false;
  std::vector<uint8_t> owned_;  // the transposed bytes
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TENSOR_SOURCE_H_
