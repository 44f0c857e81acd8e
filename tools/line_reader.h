// Lines of a pipe, a terminal or a file as they come.
//
//   const InterruptScope interrupt;
//   LineReader lines(fd);
//   for (std::string line; lines.Next(interrupt, &line);) …
//   if (!lines.status().ok()) …
#ifndef LANEWISE_TOOLS_LINE_READER_H_
#define LANEWISE_TOOLS_LINE_READER_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/cli.h"
#include "tools/interrupt.h"

namespace lanewise {

// Does not own the descriptor.
class LineReader {
 public:
  explicit LineReader(int fd, size_t longest = kMaxInputBytes)
      : fd_(fd), longest_(longest) {}

  // The next line without its newline; the last one may lack that. False at the
  // end of the input, after a Ctrl-C, and on an error.
  bool Next(const InterruptScope& interrupt, std::string* line);

  // Whether Next would find something at once: a line, more of one, or the end.
  bool Ready() const;

  // What ended the lines before the input did: it could not be read, or a line
  // is longer than `longest` bytes.
  const absl::Status& status() const { return status_; }

 private:
  int fd_;
  size_t longest_;
  std::string held_;  // read, not yet returned
  absl::Status status_;
};

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_LINE_READER_H_
