// SPDX-License-Identifier: Apache-2.0
// See thread.h.
#include "base/thread.h"

#include "base/signals.h"

namespace gen {

Result<Thread> Thread::start(void* (*body)(void*), void* argument) {
  Thread thread;
  const SignalsBlocked blocked;
  const int failed = pthread_create(&thread.handle_, nullptr, body, argument);
  if (failed != 0) return error(Code::kOutOfMemory, "cannot start a thread (error %d)", failed);
  thread.running_ = true;
  return thread;
}

void Thread::join() noexcept {
  if (running_ && home_.here()) pthread_join(handle_, nullptr);
  running_ = false;
}

void Thread::detach() noexcept {
  if (running_ && home_.here()) pthread_detach(handle_);
  running_ = false;
}

}  // namespace gen
