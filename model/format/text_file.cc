#include "model/format/text_file.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/limits.h"
#include "model/format/mapped_file.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.size() > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": expected at most ", kMaxTextBytes,
                     " bytes, found ", file.size()));
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  LANEWISE_RETURN_IF_ERROR(file.ReadAt(
      0, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return text;
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) {
    return absl::ErrnoToStatus(errno, Printable(path, 1000));
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lanewise
