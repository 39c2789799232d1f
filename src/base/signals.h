// SPDX-License-Identifier: Apache-2.0
// Signals, which are the host's: no thread of ours takes one, and a write of ours causes none.
#pragma once

#include <signal.h>

namespace gen {

/// While it lives no signal comes to this thread. A thread that is started meanwhile has them
/// blocked for good.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// While it lives a write beyond the limit on the size of files only fails, with EFBIG: the
/// SIGXFSZ that comes with it, and ends a process that does not expect it, is taken away.
class SizeSignalHeld {
 public:
  SizeSignalHeld() noexcept;
  ~SizeSignalHeld();
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;

 private:
  sigset_t before_;
  bool waiting_;  // one was before: it is somebody else's
};

}  // namespace gen
