// Reader of safetensors: one file, or the shards that an index names.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       SafetensorsFile file, SafetensorsFile::Open("model.safetensors"));
//   const Tensor* weight = file.Find("lm_head.weight");
//
// Format: huggingface.co/docs/safetensors. The header must describe every byte
// of the data exactly once: no overlap, no hole, nothing behind. Tensors may
// have no elements. Unsigned integers of 16 to 64 bits are given as the signed
// type of that width, bits unchanged. Tensors of a type without a decoder here
// (F8_E5M2, F4, C64, …) are listed apart, so that the rest can be used.
#ifndef LANEWISE_MODEL_FORMAT_SAFETENSORS_H_
#define LANEWISE_MODEL_FORMAT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/limits.h"
#include "model/format/mapped_file.h"
#include "model/format/tensor_store.h"

namespace lanewise {

struct SafetensorsOptions {
  uint64_t max_header_bytes = kMaxSafetensorsHeaderBytes;
};

class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(
      const std::string& path, const SafetensorsOptions& options = {});
  // `name` stands for the path in messages.
  static absl::StatusOr<SafetensorsFile> FromBytes(
      std::string name, std::vector<uint8_t> bytes,
      const SafetensorsOptions& options = {});

  // In the order of the data.
  absl::Span<const Tensor> tensors() const { return store_.tensors(); }
  const Tensor* Find(absl::string_view name) const { return store_.Find(name); }

  // "__metadata__" of the header.
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

  const TensorStore& store() const { return store_; }
  TensorStore TakeStore() && { return std::move(store_); }

 private:
  static absl::StatusOr<SafetensorsFile> Read(
      MappedFile file, const SafetensorsOptions& options);

  std::map<std::string, std::string> metadata_;
  TensorStore store_;
};

// All tensors of the shards that the index at `path`
// ("…/model.safetensors.index.json") names, which lie beside it. The weight map
// and the shards must agree: a file it names that is not there, a tensor its
// shard lacks and a tensor the map lacks are errors that name the index.
absl::StatusOr<TensorStore> OpenSafetensorsIndex(
    const std::string& path, const SafetensorsOptions& options = {});

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_SAFETENSORS_H_
