// SPDX-License-Identifier: Apache-2.0
// Handles Ctrl-C during an answer and while the program waits for a line.
#pragma once

#include <generate/agent.h>
#include <generate/session.h>
#include <signal.h>

#include <string>

namespace cli {

enum class Line { kRead, kInterrupted, kEnd };

/// The next line of standard input; Ctrl-C ends the program.
Line read_line(std::string* line);

/// From now on Ctrl-C is held for read_line_at_terminal. Call it before a prompt is shown, so that
/// an immediate Ctrl-C does not end the program.
void keep_interrupts();

/// The next line, or kInterrupted for a Ctrl-C since keep_interrupts or the last line. After
/// kInterrupted, a second Ctrl-C ends the program, until a line has been read.
Line read_line_at_terminal(std::string* line);

/// Lets Ctrl-C stop the answer, not the program: while an instance lives, SIGINT cancels its
/// session or agent. Afterwards SIGINT does again what it did before.
class InterruptGuard {
 public:
  explicit InterruptGuard(gen_session* session);
  explicit InterruptGuard(gen_agent* agent);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void begin();
  struct sigaction before_ = {};
};

}  // namespace cli
