// SPDX-License-Identifier: Apache-2.0
// See interrupt.h. A signal handler can reach only what is global, so the session stands in an
// atomic.
#include "interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>

namespace cli {
namespace {

std::atomic<gen_session*> current{nullptr};

extern "C" void on_interrupt(int) {
  gen_session_cancel(current.load());
  std::signal(SIGINT, SIG_DFL);  // a second one ends the program
}

volatile std::sig_atomic_t interrupted_line = 0;

extern "C" void on_interrupted_line(int) { interrupted_line = 1; }

}  // namespace

Line read_line(bool catches, std::string* line) {
  interrupted_line = 0;
  if (catches) {
    struct sigaction stop = {};
    stop.sa_handler = on_interrupted_line;  // without SA_RESTART, so that the read returns
    sigaction(SIGINT, &stop, nullptr);
  }
  const bool read = static_cast<bool>(std::getline(std::cin, *line));
  if (catches) std::signal(SIGINT, SIG_DFL);
  if (read) return Line::kRead;
  if (interrupted_line == 0) return Line::kEnd;
  std::clearerr(stdin);
  std::cin.clear();
  line->clear();
  return Line::kInterrupted;
}

InterruptGuard::InterruptGuard(gen_session* session) {
  current.store(session);
  std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  current.store(nullptr);
}

}  // namespace cli
