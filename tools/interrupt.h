// Ctrl-C as a question that a program asks.
#ifndef LANEWISE_TOOLS_INTERRUPT_H_
#define LANEWISE_TOOLS_INTERRUPT_H_

#include <signal.h>

namespace lanewise {

// While one exists, the first SIGINT only sets requested() and ends WaitToRead;
// the second ends the process. At most one at a time. A SIGINT that was ignored
// before (a background job) stays ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;

  // Waits until a read of `fd` would not block, then returns true; or until a
  // SIGINT, then returns false, also when it came before the call or another
  // thread got it. A blocking read alone would miss one that comes just before.
  bool WaitToRead(int fd) const;

 private:
  struct sigaction before_;
};

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_INTERRUPT_H_
