// SPDX-License-Identifier: Apache-2.0
// What Ctrl-C does while an answer is made and while the program waits for a line.
#pragma once

#include <generate/session.h>

#include <string>

namespace cli {

enum class Line { kRead, kInterrupted, kEnd };

/// The next line of standard input. Ctrl-C gives kInterrupted where `catches`, and else ends the
/// program.
Line read_line(bool catches, std::string* line);

/// Ctrl-C stops the answer, not the program: while one of these lives, SIGINT cancels its session.

class InterruptGuard {
 public:
  explicit InterruptGuard(gen_session* session);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

}  // namespace cli
