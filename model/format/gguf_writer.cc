#include "model/format/gguf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/gguf_header.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

}  // namespace

absl::Status GgufWriter::Error(int error, absl::string_view what) const {
  return absl::ErrnoToStatus(
      error, absl::StrCat(Printable(path_, 1000), ": cannot ", what));
}

absl::StatusOr<std::unique_ptr<GgufWriter>> GgufWriter::Create(
    const std::string& path, const Metadata& metadata,
    std::vector<GgufTensor> tensors) {
  std::unique_ptr<GgufWriter> writer(new GgufWriter);
  writer->path_ = path;
  writer->tensors_ = std::move(tensors);
  if (absl::Status status = writer->Plan(metadata); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(Printable(path, 1000), ": ",
                                                    status.message()));
  }
  LANEWISE_RETURN_IF_ERROR(writer->OpenTemporary());
  LANEWISE_RETURN_IF_ERROR(writer->Reserve());
  LANEWISE_RETURN_IF_ERROR(writer->Write(BytesOf(writer->header_)));
  writer->header_ = std::string();
  LANEWISE_RETURN_IF_ERROR(writer->NextTensors());
  return writer;
}

// Sizes and the header; the file is not touched.
absl::Status GgufWriter::Plan(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(alignment_, GgufAlignment(metadata));
  LANEWISE_ASSIGN_OR_RETURN(bytes_, GgufDataBytes(tensors_));
  std::vector<uint64_t> offsets;
  uint64_t offset = 0;
  for (const uint64_t bytes : bytes_) {
    offsets.push_back(offset);
    offset += RoundedUp(bytes, alignment_);
  }
  LANEWISE_ASSIGN_OR_RETURN(
      header_, GgufHeader(metadata, tensors_, offsets, alignment_));
  file_bytes_ = header_.size() + offset;
  return absl::OkStatus();
}

absl::Status GgufWriter::OpenTemporary() {
  if (path_.empty() || path_.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the path of a file, found \"", Printable(path_), "\""));
  }
  // What is renamed over a device replaces it.
  struct stat info;
  if (stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path_, 1000), ": expected a file or nothing, found ",
        S_ISDIR(info.st_mode) ? "a directory: add a name like /model.gguf"
                              : "a device or pipe"));
  }
  const int error = file_.Create(path_);
  return error == 0 ? absl::OkStatus() : Error(error, "create the file");
}

// An early end when the disk is too small.
absl::Status GgufWriter::Reserve() {
#ifdef __linux__
  if (fallocate(file_.fd(), 0, 0, static_cast<off_t>(file_bytes_)) == 0) {
    return absl::OkStatus();
  }
  if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) {
    return Error(errno, absl::StrCat("write ", file_bytes_, " bytes"));
  }
#endif
  return absl::OkStatus();
}

absl::Status GgufWriter::Write(absl::Span<const uint8_t> bytes) {
  const int error = file_.Write(bytes.data(), bytes.size());
  if (error == 0) return absl::OkStatus();
  return Error(error, absl::StrCat("write ", file_bytes_, " bytes"));
}

absl::Status GgufWriter::Pad(uint64_t size) {
  const std::string zeros(RoundedUp(size, alignment_) - size, '\0');
  return Write(BytesOf(zeros));
}

// Leaves behind each tensor that is whole.
absl::Status GgufWriter::NextTensors() {
  while (current_ < bytes_.size() && written_ == bytes_[current_]) {
    LANEWISE_RETURN_IF_ERROR(Pad(written_));
    ++current_;
    written_ = 0;
  }
  return absl::OkStatus();
}

absl::Status GgufWriter::Append(absl::Span<const uint8_t> bytes) {
  const uint64_t rest =
      current_ < bytes_.size() ? bytes_[current_] - written_ : 0;
  if (bytes.size() > rest) {
    return absl::OutOfRangeError(absl::StrCat(
        Printable(path_, 1000), ": ",
        current_ < tensors_.size() ? Printable(tensors_[current_].name)
                                   : "after the last tensor",
        ": expected at most ", rest, " bytes, found ", bytes.size()));
  }
  LANEWISE_RETURN_IF_ERROR(Write(bytes));
  written_ += bytes.size();
  return NextTensors();
}

absl::Status GgufWriter::Finish() {
  if (current_ < bytes_.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        Printable(path_, 1000), ": ", Printable(tensors_[current_].name),
        ": expected ", bytes_[current_], " bytes, found ", written_));
  }
  if (const int error = file_.Close(); error != 0) {
    return Error(error, "write to the disk");
  }
  if (const int error = file_.Rename(); error != 0) {
    return Error(error, "rename the finished file");
  }
  return absl::OkStatus();
}

}  // namespace lanewise
