// Reader of GGUF, versions 2 and 3, little-endian, in one file or split.
//
//   LANEWISE_ASSIGN_OR_RETURN(Gguf gguf, Gguf::Open("model.gguf"));
//   gguf.metadata().GetString("general.architecture");
//
// Specification: github.com/ggml-org/ggml/blob/master/docs/gguf.md. What is
// refused, besides what it forbids: nested arrays, arrays and counts beyond
// limits.h, tensors of more than four dimensions, tensors that share bytes, a
// type id that is not known (its size is not either). Gaps between tensors are
// accepted. Tensors of a type that is known but has no decoder here (IQ2_XXS,
// TQ1_0, …) are listed apart, so that the rest of the file can be used.
#ifndef LANEWISE_MODEL_FORMAT_GGUF_H_
#define LANEWISE_MODEL_FORMAT_GGUF_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/format/mapped_file.h"
#include "model/format/metadata.h"
#include "model/format/tensor_store.h"

namespace lanewise {

class Gguf {
 public:
  // A split model ("split.count" above 1) is opened by its first file,
  // NAME-00001-of-0000N.gguf; the others must lie beside it. Metadata is that
  // of the first.
  static absl::StatusOr<Gguf> Open(const std::string& path);

  // One unsplit file from memory; `name` stands for its path in messages.
  static absl::StatusOr<Gguf> FromBytes(std::string name,
                                        std::vector<uint8_t> bytes);

  const Metadata& metadata() const { return metadata_; }
  const TensorStore& store() const { return store_; }
  Metadata TakeMetadata() && { return std::move(metadata_); }
  TensorStore TakeStore() && { return std::move(store_); }

 private:
  Metadata metadata_;
  TensorStore store_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_GGUF_H_
