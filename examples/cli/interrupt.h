// SPDX-License-Identifier: Apache-2.0
// What Ctrl-C does while an answer is made and while the program waits for a line.
#pragma once

#include <generate/session.h>
#include <signal.h>

#include <string>

namespace cli {

enum class Line { kRead, kInterrupted, kEnd };

/// The next line of standard input; Ctrl-C ends the program.
Line read_line(std::string* line);

/// From now on Ctrl-C is kept for read_line_at_terminal. To be called before a prompt is shown, so
/// that who answers it with Ctrl-C at once does not end the program.
void keep_interrupts();

/// The next line, or kInterrupted for a Ctrl-C since keep_interrupts or the last line. Behind
/// kInterrupted a second one ends the program, until a line has come.
Line read_line_at_terminal(std::string* line);

/// Ctrl-C stops the answer, not the program: while one of these lives, SIGINT cancels its session.
/// Then SIGINT does again what it did before.
class InterruptGuard {
 public:
  explicit InterruptGuard(gen_session* session);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace cli
