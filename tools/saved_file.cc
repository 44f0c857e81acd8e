#include "tools/saved_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

// A file that goes unless it is renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path) {}
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  absl::Status Open() {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      std::string name = absl::StrCat(path_, ".", getpid(), "-", i, ".partial");
      fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ >= 0) {
        name_ = std::move(name);
        return absl::OkStatus();
      }
      if (errno != EEXIST) break;
    }
    return Error("create");
  }

  absl::Status Write(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Error("write to");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Rename() {
    if (fsync(fd_) != 0) return Error("write to");
    if (close(std::exchange(fd_, -1)) != 0) return Error("write to");
    if (rename(name_.c_str(), path_.c_str()) != 0) return Error("name");
    name_.clear();
    return absl::OkStatus();
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot ", what, " the file ", Escaped(path_)));
  }

  const std::string path_;
  std::string name_;
  int fd_ = -1;
};

}  // namespace

absl::Status SaveFile(const std::string& path, absl::string_view bytes) {
  struct stat info;
  if (path.empty()) {
    return absl::InvalidArgumentError("expected a file's name, found \"\"");
  }
  // What is renamed over a device replaces it.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Escaped(path), ": expected a file or nothing, found ",
        S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe"));
  }
  TemporaryFile file(path);
  absl::Status status = file.Open();
  if (status.ok()) status = file.Write(bytes);
  if (status.ok()) status = file.Rename();
  return status;
}

std::string NpyHeader(absl::Span<const size_t> shape) {
  std::string text = absl::StrCat(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (",
      absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")", ", }");
  // Magic, version and length take 10 bytes; the whole ends with a newline at a
  // multiple of 64.
  constexpr size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string NpyFile(absl::Span<const size_t> shape,
                    absl::Span<const float> values) {
  std::string file = NpyHeader(shape);
  file.reserve(file.size() + values.size() * sizeof(float));
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int shift = 0; shift < 32; shift += 8) {
      file += static_cast<char>(bits >> shift);
    }
  }
  return file;
}

}  // namespace lanewise
