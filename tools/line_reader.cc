#include "tools/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace lanewise {

bool LineReader::Next(const InterruptScope& interrupt, std::string* line) {
  size_t searched = 0;
  while (status_.ok()) {
    const size_t end = held_.find('\n', searched);
    if (end != std::string::npos) {
      line->assign(held_, 0, end);
      held_.erase(0, end + 1);
      return true;
    }
    searched = held_.size();
    if (searched > longest_) {
      status_ = absl::OutOfRangeError(
          absl::StrCat("expected lines of at most ", longest_,
                       " bytes, found a longer one"));
      return false;
    }
    if (!interrupt.WaitToRead(fd_)) return false;
    char block[4096];
    const ssize_t count = read(fd_, block, sizeof(block));
    if (count > 0) {
      held_.append(block, static_cast<size_t>(count));
    } else if (count == 0) {
      if (held_.empty()) return false;
      *line = std::move(held_);  // the last line has no newline
      held_.clear();
      return true;
    } else if (errno != EINTR && errno != EAGAIN) {
      status_ = absl::ErrnoToStatus(errno, "cannot read the input");
    }
  }
  return false;
}

bool LineReader::Ready() const {
  pollfd input{fd_, POLLIN, 0};
  return held_.find('\n') != std::string::npos || poll(&input, 1, 0) > 0;
}

}  // namespace lanewise
