#include "tools/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"

namespace lanewise {

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(
    const std::string& path) {
  auto file = absl::WrapUnique(new OutputFile(path));
  LANEWISE_RETURN_IF_ERROR(file->Open());
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status OutputFile::Error(int error) const {
  return absl::ErrnoToStatus(
      error, absl::StrCat(Escaped(path_, PATH_MAX), ": cannot write"));
}

absl::Status OutputFile::Open() {
  if (path_.empty() || path_.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the path of a file, found '", Escaped(path_, PATH_MAX), "'"));
  }
  // What is renamed over a device or a link replaces it.
  struct stat info;
  if (stat(path_.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Error(EISDIR);
    if (!S_ISREG(info.st_mode)) {
      fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      return fd_ >= 0 ? absl::OkStatus() : Error(errno);
    }
    char resolved[PATH_MAX];
    if (realpath(path_.c_str(), resolved) == nullptr) return Error(errno);
    path_ = resolved;
  }
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string name = absl::StrCat(path_, ".", getpid(), "-", i, ".partial");
    fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) {
      temporary_ = std::move(name);
      return absl::OkStatus();
    }
    if (errno != EEXIST) break;
  }
  return Error(errno);
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error(errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  if (!temporary_.empty() && fsync(fd_) != 0) return Error(errno);
  if (close(std::exchange(fd_, -1)) != 0) return Error(errno);
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Error(errno);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace lanewise
