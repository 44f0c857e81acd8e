// A regular file, mapped for reading, or a buffer in its place.
//
//   LANEWISE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open("a.gguf"));
//   uint8_t magic[4];
//   LANEWISE_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(magic)));
//
// Two ways to the bytes:
// - ReadAt copies through the file descriptor. A file that was cut short since
//   it was opened gives a status. Headers and weights are read this way.
// - bytes() is the mapping itself. Touching a page that the file no longer has
//   raises SIGBUS, which no library can turn into a status for a whole process;
//   it is for callers who own the file.
// From a warm page cache one Zen 4 core reads 14 GB/s through the mapping and
// 10 GB/s with ReadAt in pieces of 1 MiB: safety costs 0.03 s a gigabyte.
#ifndef LANEWISE_MODEL_FORMAT_MAPPED_FILE_H_
#define LANEWISE_MODEL_FORMAT_MAPPED_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lanewise {

class MappedFile {
 public:
  // One line with path and cause for what is missing, unreadable, or not a
  // regular file (a directory, a FIFO, a device). An empty file is fine. Where
  // mapping is not possible (some network file systems) the whole file is read.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  // `name` stands for the path in messages.
  static MappedFile FromBytes(std::string name, std::vector<uint8_t> bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return bytes_.size(); }  // when it was opened
  absl::Span<const uint8_t> bytes() const { return bytes_; }

  // Fills `out` from `offset` on. DATA_LOSS ("path: truncated …") where the
  // file ends before that. Threads may call it at once.
  absl::Status ReadAt(uint64_t offset, absl::Span<uint8_t> out) const;

  // Tells the system that this part of bytes() is not needed any more. It can
  // still be read.
  void DontNeed(absl::Span<const uint8_t> part) const;

  bool Contains(const uint8_t* pointer) const;

 private:
  MappedFile() = default;
  absl::Status MapOrRead();
  void Close();

  std::string path_;
  int fd_ = -1;          // -1 for a buffer
  bool mapped_ = false;  // whether bytes_ is a mapping
  bool copied_ = false;  // … of memory that holds a copy of the file
  std::vector<uint8_t> buffer_;
  absl::Span<const uint8_t> bytes_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_MAPPED_FILE_H_
