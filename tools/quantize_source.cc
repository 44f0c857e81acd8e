#include "tools/quantize_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

// The bytes as they lie in the file.
class PlainReader : public TensorReader {
 public:
  PlainReader(const Checkpoint& checkpoint, const Tensor& tensor)
      : checkpoint_(checkpoint), tensor_(tensor) {}

  absl::Status Read(uint64_t begin, uint64_t count,
                    uint8_t* out) const override {
    return checkpoint_.Read(tensor_, BytesOf(tensor_.type, begin),
                            absl::MakeSpan(out, BytesOf(tensor_.type, count)));
  }

 private:
  const Checkpoint& checkpoint_;
  const Tensor& tensor_;
};

class GgufSource : public QuantizeSource {
 public:
  explicit GgufSource(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), metadata_(checkpoint.path()) {
    const Metadata& from = checkpoint.metadata();
    for (const std::string& key : from.keys()) {
      // One file comes out, whatever went in.
      if (absl::StartsWith(key, "split.") || key == "general.file_type" ||
          key == "general.quantization_version") {
        continue;
      }
      metadata_.Insert(key, *from.Find(key), from.TypeOf(key));
    }
    for (const Tensor& tensor : checkpoint.tensors()) {
      tensors_.push_back({tensor.name, tensor.name, tensor.type, tensor.shape});
    }
  }

  const Metadata& metadata() const override { return metadata_; }
  absl::Span<const SourceTensor> tensors() const override { return tensors_; }
  absl::StatusOr<std::unique_ptr<TensorReader>> Open(
      size_t index) const override {
    return std::make_unique<PlainReader>(checkpoint_,
                                         checkpoint_.tensors()[index]);
  }
  void Release(size_t index) const override {
    checkpoint_.Release(checkpoint_.tensors()[index]);
  }
  absl::Span<const std::string> notices() const override { return {}; }

 private:
  const Checkpoint& checkpoint_;
  Metadata metadata_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace

uint64_t SourceTensor::elements() const {
  uint64_t product = 1;
  for (const uint64_t dim : shape) product *= dim;
  return product;
}

absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeGgufSource(
    const Checkpoint& checkpoint) {
  if (!checkpoint.unsupported().empty()) {
    const UnsupportedTensor& tensor = checkpoint.unsupported().front();
    return absl::UnimplementedError(absl::StrCat(
        checkpoint.path(), ": tensor ", Escaped(tensor.name, 200), ": type ",
        tensor.type,
        " cannot be decoded here: start from a file of F32, F16, BF16 or "
        "another type that `inspect` shows as supported"));
  }
  return std::make_unique<GgufSource>(checkpoint);
}

absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeQuantizeSource(
    const Checkpoint& checkpoint, const SourceOptions& options) {
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    return MakeGgufSource(checkpoint);
  }
  return MakeFolderSource(checkpoint, options);
}

}  // namespace lanewise
