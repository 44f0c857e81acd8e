#include "tools/output.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

constexpr std::chrono::seconds kQuiet{1};
constexpr std::chrono::milliseconds kRedraw{100};

// Writes all of `text`; 0 or the errno.
int WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Somebody made the descriptor non-blocking.
      pollfd ready{fd, POLLOUT, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return errno;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Output::Output(int fd) : fd_(fd), terminal_(isatty(fd) == 1) {}

bool Output::Write(absl::string_view text) {
  if (reader_gone_ || !status_.ok()) return false;
  if (text.empty()) return true;
  const int error =
      terminal_ ? WriteAll(fd_, ForTerminal(text)) : WriteAll(fd_, text);
  line_begun_ = text.back() != '\n';
  if (error == EPIPE) {
    reader_gone_ = true;
  } else if (error != 0) {
    status_ = absl::ErrnoToStatus(error, "cannot write the output");
  }
  return error == 0;
}

bool Output::EndLine() { return !line_begun_ || Write("\n"); }

ProgressLine::ProgressLine(int fd, std::string label)
    : fd_(fd),
      terminal_(isatty(fd) == 1),
      label_(std::move(label)),
      next_(Clock::now() + kQuiet) {}

void ProgressLine::Update(size_t done, size_t total) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  drawn_ = true;
  WriteAll(fd_, absl::StrCat("\r", label_, " ", done,
                             total > 0 ? absl::StrCat(" of ", total) : "",
                             "\x1b[K"));
}

void ProgressLine::Clear() {
  if (drawn_) WriteAll(fd_, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace lanewise
