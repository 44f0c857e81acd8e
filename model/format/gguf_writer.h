// Writer of GGUF, version 3, little-endian, one file.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       auto writer, GgufWriter::Create("out.gguf", metadata,
//                                       {{"w", DType::kF32, {2, 4}}}));
//   LANEWISE_RETURN_IF_ERROR(writer->Append(bytes));  // 32 of them
//   LANEWISE_RETURN_IF_ERROR(writer->Finish());
//
// The file takes its name in Finish, once all is on the disk (PartialFile).
//
// Specification: github.com/ggml-org/ggml/blob/master/docs/gguf.md. The order
// of bytes is that of its reference writer.
#ifndef LANEWISE_MODEL_FORMAT_GGUF_WRITER_H_
#define LANEWISE_MODEL_FORMAT_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/format/metadata.h"
#include "model/format/partial_file.h"
#include "simd/types.h"

namespace lanewise {

struct GgufTensor {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;  // slowest axis first
};

class GgufWriter {
 public:
  // Writes the header: `metadata` in its order and types, its
  // general.alignment (32 where it says nothing). INVALID_ARGUMENT for what
  // the format or limits.h forbid: names that are empty, long or used twice,
  // more than four dimensions, rows that are no whole blocks, a value that its
  // type cannot hold. RESOURCE_EXHAUSTED when the disk has no room for all of
  // the file, where the system can tell. `path` may be an existing file, not a
  // folder or device.
  static absl::StatusOr<std::unique_ptr<GgufWriter>> Create(
      const std::string& path, const Metadata& metadata,
      std::vector<GgufTensor> tensors);

  // The next bytes of the tensor whose turn it is, in the order of the list;
  // OUT_OF_RANGE beyond its end. Calls may cut a tensor anywhere.
  absl::Status Append(absl::Span<const uint8_t> bytes);

  // FAILED_PRECONDITION while bytes are missing. Nothing may be called after.
  absl::Status Finish();

  uint64_t file_bytes() const { return file_bytes_; }  // of the whole file

 private:
  GgufWriter() = default;
  absl::Status Plan(const Metadata& metadata);
  absl::Status OpenTemporary();
  absl::Status Reserve();
  absl::Status Write(absl::Span<const uint8_t> bytes);
  absl::Status Pad(uint64_t size);
  absl::Status NextTensors();
  absl::Status Error(int error, absl::string_view what) const;

  std::string path_;
  PartialFile file_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint64_t> bytes_;  // of each tensor
  std::string header_;           // with its padding; empty once written
  uint64_t alignment_ = 32;
  uint64_t file_bytes_ = 0;
  size_t current_ = 0;    // tensor
  uint64_t written_ = 0;  // bytes of it
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_GGUF_WRITER_H_
