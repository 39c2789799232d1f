// SPDX-License-Identifier: Apache-2.0
// Signals belong to the host: no thread of the library receives one, and no write of it raises one.
#pragma once

#include <signal.h>

namespace gen {

/// Blocks all signals on this thread during its lifetime. A thread started meanwhile has them
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

/// During its lifetime a write beyond the limit on the size of files only fails, with EFBIG: the
/// SIGXFSZ that it raises, which would end an unprepared process, is discarded.
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
