#include "model/format/tensor_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/limits.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<uint64_t> CheckedElements(absl::Span<const uint64_t> shape) {
  uint64_t product = 1;
  bool empty = false;
  for (uint64_t dim : shape) {
    if (dim == 0) {
      empty = true;
    } else if (dim > kMaxElements / product) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected at most ", kMaxElements,
                       " elements, found shape ", ShapeText(shape)));
    } else {
      product *= dim;
    }
  }
  return empty ? 0 : product;
}

const MappedFile& TensorStore::AddFile(MappedFile file) {
  files_.push_back(std::move(file));
  const MappedFile& kept = files_.back();
  owner_[reinterpret_cast<uintptr_t>(kept.bytes().data())] = &kept;
  return kept;
}

absl::Status TensorStore::Index(const std::string& name,
                                const std::string& file, Slot slot) {
  if (size() >= kMaxTensors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        file, ": expected at most ", kMaxTensors, " tensors, found more"));
  }
  if (!index_.try_emplace(name, slot).second) {
    const std::string* other = FileOf(name);
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": tensor ", Printable(name),
        ": expected unique names, found it twice",
        *other == file ? "" : absl::StrCat(" (also in ", *other, ")")));
  }
  return absl::OkStatus();
}

absl::Status TensorStore::Add(Tensor tensor) {
  LANEWISE_RETURN_IF_ERROR(
      Index(tensor.name, tensor.file, {true, tensors_.size()}));
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status TensorStore::AddUnsupported(UnsupportedTensor tensor) {
  LANEWISE_RETURN_IF_ERROR(
      Index(tensor.name, tensor.file, {false, unsupported_.size()}));
  unsupported_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status TensorStore::Absorb(TensorStore other) {
  for (MappedFile& file : other.files_) AddFile(std::move(file));
  for (Tensor& tensor : other.tensors_) {
    LANEWISE_RETURN_IF_ERROR(Add(std::move(tensor)));
  }
  for (UnsupportedTensor& tensor : other.unsupported_) {
    LANEWISE_RETURN_IF_ERROR(AddUnsupported(std::move(tensor)));
  }
  return absl::OkStatus();
}

const Tensor* TensorStore::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  if (it == index_.end() || !it->second.supported) return nullptr;
  return &tensors_[it->second.index];
}

absl::StatusOr<const Tensor*> TensorStore::Require(
    absl::string_view name, absl::string_view path) const {
  const auto it = index_.find(name);
  if (it == index_.end()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": tensor ", Printable(name), ": missing"));
  }
  if (it->second.supported) return &tensors_[it->second.index];
  const UnsupportedTensor& tensor = unsupported_[it->second.index];
  return absl::UnimplementedError(
      absl::StrCat(tensor.file, ": tensor ", Printable(tensor.name), ": type ",
                   Printable(tensor.type, 40), " is not supported"));
}

const std::string* TensorStore::FileOf(absl::string_view name) const {
  const auto it = index_.find(name);
  if (it == index_.end()) return nullptr;
  return it->second.supported ? &tensors_[it->second.index].file
                              : &unsupported_[it->second.index].file;
}

const MappedFile* TensorStore::Owner(const Tensor& tensor) const {
  const uint8_t* data = tensor.data.data();
  auto it = owner_.upper_bound(reinterpret_cast<uintptr_t>(data));
  if (it == owner_.begin()) return nullptr;
  --it;
  return it->second->Contains(data) ? it->second : nullptr;
}

absl::Status TensorStore::Read(const Tensor& tensor, uint64_t offset,
                               absl::Span<uint8_t> out) const {
  if (offset > tensor.data.size() || out.size() > tensor.data.size() - offset) {
    return absl::OutOfRangeError(absl::StrCat(
        tensor.file, ": tensor ", Printable(tensor.name), ": expected at most ",
        tensor.data.size(), " bytes, asked for ", out.size(), " at ", offset));
  }
  if (out.empty()) return absl::OkStatus();
  const MappedFile* file = Owner(tensor);
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.file, ": tensor ", Printable(tensor.name),
                     ": not a tensor of this model"));
  }
  const absl::Status status = file->ReadAt(
      static_cast<uint64_t>(tensor.data.data() - file->bytes().data()) + offset,
      out);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " (reading tensor ",
                                   Printable(tensor.name), ")"));
}

void TensorStore::Release(const Tensor& tensor) const {
  if (tensor.data.empty()) return;
  if (const MappedFile* file = Owner(tensor)) file->DontNeed(tensor.data);
}

}  // namespace lanewise
