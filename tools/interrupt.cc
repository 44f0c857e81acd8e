#include "tools/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>

namespace lanewise {
namespace {

// Signal handlers can reach globals only. Atomic: any thread may run them.
std::atomic<bool> interrupt_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "not for handlers");
// A pipe that the handler writes to and WaitToRead polls. Never closed: a
// handler may still run on another thread when its scope ends.
int wake[2] = {-1, -1};

void OnInterrupt(int) {
  const int saved = errno;
  interrupt_requested = true;
  // Full or absent: the flag is all there is.
  if (write(wake[1], "", 1) < 0) errno = saved;
}

// Makes the pipe, or empties it.
void PrepareWake() {
  if (wake[0] < 0) {
    if (pipe(wake) != 0) return;
    for (const int fd : wake) {
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }
  char bytes[16];
  while (read(wake[0], bytes, sizeof(bytes)) > 0) {
  }
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupt_requested = false;
  PrepareWake();
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESETHAND;  // and no SA_RESTART
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptScope::requested() const { return interrupt_requested; }

bool InterruptScope::WaitToRead(int fd) const {
  while (!requested()) {
    pollfd fds[2] = {{fd, POLLIN, 0}, {wake[0], POLLIN, 0}};
    const int ready = poll(fds, 2, -1);
    if (ready < 0 && errno != EINTR) return true;  // the read says what it is
    if (ready > 0 && fds[0].revents != 0) return !requested();
  }
  return false;
}

}  // namespace lanewise
