#include "model/format/partial_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lanewise {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<size_t>(slash, 1));
}

// A rename is on the disk when its folder is; not all systems can say so.
void SyncFolder(const std::string& path) {
  const int fd =
      open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace

int WriteAll(int fd, const void* bytes, size_t size) {
  const char* rest = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = write(fd, rest, std::min(size, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    rest += count;
    size -= static_cast<size_t>(count);
  }
  return 0;
}

PartialFile::~PartialFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

int PartialFile::Create(const std::string& path) {
  path_ = path;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string name = absl::StrCat(path_, ".", getpid(), "-", i, ".partial");
    fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) {
      temporary_ = std::move(name);
      return 0;
    }
    if (errno != EEXIST) break;
  }
  return errno;
}

int PartialFile::Write(const void* bytes, size_t size) {
  return WriteAll(fd_, bytes, size);
}

int PartialFile::Close() {
  if (fsync(fd_) != 0) return errno;
  return close(std::exchange(fd_, -1)) != 0 ? errno : 0;
}

int PartialFile::Rename() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return errno;
  temporary_.clear();
  SyncFolder(path_);
  return 0;
}

}  // namespace lanewise
