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
  if (device_ >= 0) close(device_);
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
      device_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      return device_ >= 0 ? absl::OkStatus() : Error(errno);
    }
    char resolved[PATH_MAX];
    if (realpath(path_.c_str(), resolved) == nullptr) return Error(errno);
    path_ = resolved;
  }
  const int error = file_.Create(path_);
  return error == 0 ? absl::OkStatus() : Error(error);
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  const int error = device_ >= 0 ? WriteAll(device_, bytes.data(), bytes.size())
                                 : file_.Write(bytes.data(), bytes.size());
  return error == 0 ? absl::OkStatus() : Error(error);
}

absl::Status OutputFile::Finish() {
  if (device_ >= 0) {
    return close(std::exchange(device_, -1)) == 0 ? absl::OkStatus()
                                                  : Error(errno);
  }
  int error = file_.Close();
  if (error == 0) error = file_.Rename();
  return error == 0 ? absl::OkStatus() : Error(error);
}

}  // namespace lanewise
