// A file that appears under its name only once it is whole.
#ifndef LANEWISE_TOOLS_OUTPUT_FILE_H_
#define LANEWISE_TOOLS_OUTPUT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/partial_file.h"

namespace lanewise {

// Writes to a file beside it; Finish renames that one, and without Finish it is
// removed. A device or pipe is written to directly. Errors name the file.
class OutputFile {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(
      const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Write(absl::string_view bytes);
  absl::Status Finish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}

  absl::Status Open();
  absl::Status Error(int error) const;

  std::string path_;
  PartialFile file_;
  int device_ = -1;  // path_ itself, where that is no file; else unused
};

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_OUTPUT_FILE_H_
