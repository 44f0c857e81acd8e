#include "tools/interrupt.h"

namespace lanewise {
namespace {

// Signal handlers can reach globals only.
volatile sig_atomic_t interrupt_requested = 0;

void OnInterrupt(int) { interrupt_requested = 1; }

}  // namespace

InterruptScope::InterruptScope() {
  interrupt_requested = 0;
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESETHAND;  // and no SA_RESTART
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptScope::requested() const { return interrupt_requested != 0; }

}  // namespace lanewise
