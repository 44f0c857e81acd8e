// Small files and folders.
#ifndef LANEWISE_MODEL_FORMAT_TEXT_FILE_H_
#define LANEWISE_MODEL_FORMAT_TEXT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lanewise {

// The bytes of a regular file; RESOURCE_EXHAUSTED beyond kMaxTextBytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Whether there is anything of this name.
bool FileExists(const std::string& path);

// The names in a folder, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_TEXT_FILE_H_
