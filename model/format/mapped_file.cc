#include "model/format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::Status ErrnoStatus(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, Printable(path, 1000));
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), ": a path cannot hold a zero byte"));
  }
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, path);
  MappedFile file;
  file.fd_ = fd;
  file.path_ = path;
  LANEWISE_RETURN_IF_ERROR(file.MapOrRead());
  return file;
}

absl::Status MappedFile::MapOrRead() {
  struct stat info;
  if (fstat(fd_, &info) != 0) return ErrnoStatus(errno, path_);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path_, 1000), ": expected a regular file, found ",
        KindOf(info.st_mode)));
  }
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size == 0) return absl::OkStatus();
  if (size > std::numeric_limits<ptrdiff_t>::max()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        Printable(path_, 1000), ": ", size, " bytes exceed the address space"));
  }
  void* map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (map != MAP_FAILED) {
    mapped_ = true;
    bytes_ = absl::MakeConstSpan(static_cast<const uint8_t*>(map), size);
    return absl::OkStatus();
  }
  if (errno != ENODEV) return ErrnoStatus(errno, path_);
  map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
             -1, 0);
  if (map == MAP_FAILED) return ErrnoStatus(errno, path_);
  mapped_ = true;
  copied_ = true;
  bytes_ = absl::MakeConstSpan(static_cast<const uint8_t*>(map), size);
  return ReadAt(0, absl::MakeSpan(static_cast<uint8_t*>(map), size));
}

MappedFile MappedFile::FromBytes(std::string name, std::vector<uint8_t> bytes) {
  MappedFile file;
  file.path_ = std::move(name);
  file.buffer_ = std::move(bytes);
  file.bytes_ = file.buffer_;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  mapped_ = std::exchange(other.mapped_, false);
  copied_ = other.copied_;
  buffer_ = std::move(other.buffer_);  // keeps its address
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

MappedFile::~MappedFile() { Close(); }

void MappedFile::Close() {
  if (mapped_) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  mapped_ = false;
  bytes_ = {};
}

absl::Status MappedFile::ReadAt(uint64_t offset,
                                absl::Span<uint8_t> out) const {
  const auto truncated = [&](uint64_t size) {
    return absl::DataLossError(absl::StrCat(
        Printable(path_, 1000), ": truncated: expected ", out.size(),
        " bytes at ", offset, ", found the end at ", size));
  };
  if (fd_ < 0) {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return truncated(bytes_.size());
    }
    if (!out.empty()) {
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }
    return absl::OkStatus();
  }
  if (offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return truncated(bytes_.size());
  }
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min<size_t>(out.size() - done, size_t{1} << 30);
    const ssize_t got =
        pread(fd_, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, path_);
    if (got == 0) return truncated(offset + done);
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

void MappedFile::DontNeed(absl::Span<const uint8_t> part) const {
  if (!mapped_ || copied_ || part.empty()) return;
  // Whole pages only: a page at an edge may hold a neighbour's bytes.
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
}

bool MappedFile::Contains(const uint8_t* pointer) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes_.data());
  return at >= begin && at - begin < bytes_.size();
}

}  // namespace lanewise
