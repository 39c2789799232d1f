// SPDX-License-Identifier: Apache-2.0
// Ctrl-C stops the answer, not the program: while one of these lives, SIGINT cancels its session.
#pragma once

#include <generate/session.h>

namespace cli {

class InterruptGuard {
 public:
  explicit InterruptGuard(gen_session* session);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

}  // namespace cli
