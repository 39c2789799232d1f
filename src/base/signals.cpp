// SPDX-License-Identifier: Apache-2.0
// See signals.h. The system sends SIGXFSZ to the thread that writes, so that it can be held back
// and taken there, whatever other threads do.
#include "base/signals.h"

#include <ctime>

namespace gen {
namespace {

sigset_t size_signal() noexcept {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  return one;
}

}  // namespace

SizeSignalHeld::SizeSignalHeld() noexcept {
  sigset_t pending;
  waiting_ = sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t one = size_signal();
  pthread_sigmask(SIG_BLOCK, &one, &before_);
}

SizeSignalHeld::~SizeSignalHeld() {
  const sigset_t one = size_signal();
  const timespec now{};
  if (!waiting_) static_cast<void>(sigtimedwait(&one, nullptr, &now));
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace gen
