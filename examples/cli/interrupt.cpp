// SPDX-License-Identifier: Apache-2.0
// See interrupt.h. A signal handler can only access globals, so the session is in an atomic.
#include "interrupt.h"

#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <iostream>

namespace cli {
namespace {

std::atomic<gen_session*> current{nullptr};
std::atomic<gen_agent*> current_agent{nullptr};

extern "C" void on_interrupt(int) {
  gen_session_cancel(current.load());
  gen_agent_cancel(current_agent.load());
  std::signal(SIGINT, SIG_DFL);  // a second one ends the program
}

volatile std::sig_atomic_t interrupted_line = 0;

extern "C" void on_interrupted_line(int) { interrupted_line = 1; }

}  // namespace

Line read_line(std::string* line) {
  return std::getline(std::cin, *line) ? Line::kRead : Line::kEnd;
}

void keep_interrupts() {
  struct sigaction keep = {};
  keep.sa_handler = on_interrupted_line;
  keep.sa_flags = SA_RESTART;  // otherwise a prompt that is being written fails; pselect returns
                               // anyway
  sigaction(SIGINT, &keep, nullptr);
}

Line read_line_at_terminal(std::string* line) {
  // Only the wait unblocks SIGINT: a signal that arrives before it is not missed.
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, &before);
  while (interrupted_line == 0) {
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    const int ready = pselect(STDIN_FILENO + 1, &input, nullptr, nullptr, nullptr, &before);
    if (ready >= 0 || errno != EINTR) break;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const Line got = interrupted_line == 0 ? read_line(line) : Line::kInterrupted;
  if (interrupted_line != 0) {  // possibly within a line that Ctrl-D had sent in part
    std::signal(SIGINT, SIG_DFL);
    interrupted_line = 0;
    return Line::kInterrupted;
  }
  if (got == Line::kRead) keep_interrupts();
  return got;
}

InterruptGuard::InterruptGuard(gen_session* session) {
  current.store(session);
  begin();
}

InterruptGuard::InterruptGuard(gen_agent* agent) {
  current_agent.store(agent);
  begin();
}

void InterruptGuard::begin() {
  struct sigaction stop = {};
  stop.sa_handler = on_interrupt;
  stop.sa_flags = SA_RESTART;
  sigaction(SIGINT, &stop, &before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_, nullptr);
  current.store(nullptr);
  current_agent.store(nullptr);
}

}  // namespace cli
