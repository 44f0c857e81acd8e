// Files that programs write: whole or not at all, and arrays in NumPy's format.
#ifndef LANEWISE_TOOLS_SAVED_FILE_H_
#define LANEWISE_TOOLS_SAVED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lanewise {

// Writes to a temporary file in the same folder, which then takes the name
// `path`: what was there stays until all is on the disk, and on errors. Errors
// name the path; a folder or a device of that name is one.
absl::Status SaveFile(const std::string& path, absl::string_view bytes);

// What stands before the values of an array of little-endian f32 in C order:
// numpy.lib.format, version 1.0. shape: slowest axis first.
std::string NpyHeader(absl::Span<const size_t> shape);

// A whole .npy file.
std::string NpyFile(absl::Span<const size_t> shape,
                    absl::Span<const float> values);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_SAVED_FILE_H_
