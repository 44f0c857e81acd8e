// What `quantize` reads: a model's metadata and tensors as a GGUF file lays
// them out, from a GGUF file or a Hugging Face folder.
#ifndef LANEWISE_TOOLS_QUANTIZE_SOURCE_H_
#define LANEWISE_TOOLS_QUANTIZE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/format/checkpoint.h"
#include "model/format/metadata.h"
#include "simd/types.h"

namespace lanewise {

// The elements of one tensor, row after row.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // The bytes of `count` elements from element `begin` on, both multiples of
  // the type's block or up to the end. Threads may call it at once.
  virtual absl::Status Read(uint64_t begin, uint64_t count,
                            uint8_t* out) const = 0;
};

struct SourceTensor {
  std::string name;             // in GGUF
  std::string original;         // in the file it comes from, for messages
  DType type;                   // of what is read
  std::vector<uint64_t> shape;  // slowest axis first

  uint64_t elements() const;
  // Of the fastest axis; 1 for a scalar.
  uint64_t row() const { return shape.empty() ? 1 : shape.back(); }
};

class QuantizeSource {
 public:
  virtual ~QuantizeSource() = default;

  // All pairs but general.file_type and general.quantization_version.
  virtual const Metadata& metadata() const = 0;
  virtual absl::Span<const SourceTensor> tensors() const = 0;
  // Of tensors()[index]; lives no longer than this source.
  virtual absl::StatusOr<std::unique_ptr<TensorReader>> Open(
      size_t index) const = 0;
  // Called when the tensor is not needed any more.
  virtual void Release(size_t index) const = 0;
  // What is worth knowing; one line each.
  virtual absl::Span<const std::string> notices() const = 0;
};

struct SourceOptions {
  bool tokenizer = true;  // folder: write it
};

// `checkpoint` must outlive the source. Errors say what GGUF cannot express.
absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeQuantizeSource(
    const Checkpoint& checkpoint, const SourceOptions& options);

// Parts of it, by the kind of checkpoint.
absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeGgufSource(
    const Checkpoint& checkpoint);
absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeFolderSource(
    const Checkpoint& checkpoint, const SourceOptions& options);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_QUANTIZE_SOURCE_H_
