// The tensors of one or several files, by name, with the files they live in.
// GGUF and safetensors readers both end in one.
#ifndef LANEWISE_MODEL_FORMAT_TENSOR_STORE_H_
#define LANEWISE_MODEL_FORMAT_TENSOR_STORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/mapped_file.h"
#include "model/format/tensor.h"

namespace lanewise {

// "[2, 3]"
std::string ShapeText(absl::Span<const uint64_t> shape);

// The number of elements, or an error text without file and tensor: more than
// kMaxElements (a zero counting as one), so no product of these dimensions can
// overflow.
absl::StatusOr<uint64_t> CheckedElements(absl::Span<const uint64_t> shape);

class TensorStore {
 public:
  // Keeps the file; views of its bytes stay valid as long as the store lives.
  const MappedFile& AddFile(MappedFile file);

  // INVALID_ARGUMENT for a name that is there already, RESOURCE_EXHAUSTED
  // beyond kMaxTensors.
  absl::Status Add(Tensor tensor);
  absl::Status AddUnsupported(UnsupportedTensor tensor);

  // Takes over all files and tensors of another store.
  absl::Status Absorb(TensorStore other);

  absl::Span<const Tensor> tensors() const { return tensors_; }
  absl::Span<const UnsupportedTensor> unsupported() const {
    return unsupported_;
  }
  uint64_t size() const { return tensors_.size() + unsupported_.size(); }
  const Tensor* Find(absl::string_view name) const;
  // `path` is for the message.
  absl::StatusOr<const Tensor*> Require(absl::string_view name,
                                        absl::string_view path) const;
  // The file of a tensor of either list; null when the name is not known.
  const std::string* FileOf(absl::string_view name) const;

  // As Checkpoint::Read and Checkpoint::Release.
  absl::Status Read(const Tensor& tensor, uint64_t offset,
                    absl::Span<uint8_t> out) const;
  void Release(const Tensor& tensor) const;

 private:
  struct Slot {
    bool supported;
    size_t index;
  };

  absl::Status Index(const std::string& name, const std::string& file,
                     Slot slot);
  const MappedFile* Owner(const Tensor& tensor) const;

  std::deque<MappedFile> files_;                  // addresses do not change
  std::map<uintptr_t, const MappedFile*> owner_;  // by first address
  std::vector<Tensor> tensors_;
  std::vector<UnsupportedTensor> unsupported_;
  absl::flat_hash_map<std::string, Slot> index_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_TENSOR_STORE_H_
