// SPDX-License-Identifier: Apache-2.0
// See interrupt.h. A signal handler can reach only what is global, so the session stands in an
// atomic.
#include "interrupt.h"

#include <atomic>
#include <csignal>

namespace cli {
namespace {

std::atomic<gen_session*> current{nullptr};

extern "C" void on_interrupt(int) {
  gen_session_cancel(current.load());
  std::signal(SIGINT, SIG_DFL);  // a second one ends the program
}

}  // namespace

InterruptGuard::InterruptGuard(gen_session* session) {
  current.store(session);
  std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  current.store(nullptr);
}

}  // namespace cli
