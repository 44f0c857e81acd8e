// Writing results, drawing progress.
#ifndef LANEWISE_TOOLS_OUTPUT_H_
#define LANEWISE_TOOLS_OUTPUT_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// Unbuffered text to a descriptor that it does not own. SIGPIPE must be
// ignored.
class Output {
 public:
  explicit Output(int fd);

  // Escapes controls where the descriptor is a terminal (escaped.h). False once
  // nothing can be written any more; then further text is dropped.
  bool Write(absl::string_view text);

  // A newline unless the text so far ends with one or is empty.
  bool EndLine();

  // Whether the reader of a pipe has gone: no error, it has what it wanted.
  bool reader_gone() const { return reader_gone_; }

  // The error that ended writing; OK also when the reader has gone.
  const absl::Status& status() const { return status_; }

 private:
  int fd_;
  bool terminal_;
  bool line_begun_ = false;
  bool reader_gone_ = false;
  absl::Status status_;
};

// One line that is drawn over and over, only on a terminal and only once the
// work has taken a second; its end removes it.
class ProgressLine {
 public:
  ProgressLine(int fd, std::string label);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(size_t done, size_t total);  // total 0: not known
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  int fd_;
  bool terminal_;
  bool drawn_ = false;
  std::string label_;
  Clock::time_point next_;
};

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_OUTPUT_H_
