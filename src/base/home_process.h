// SPDX-License-Identifier: Apache-2.0
// After fork() the child has copies of all objects, but none of their threads, and locks that a
// thread of the parent held at that moment are never released. So an object with threads or locks
// remembers the process that made it, and refuses to work in another one.
#pragma once

#include <unistd.h>

#include "base/status.h"

namespace gen {

/// A part of an object: where it was made. Threads: immutable.
class HomeProcess {
 public:
  HomeProcess() noexcept : id_(::getpid()) {}

  /// Whether this is that process.
  [[nodiscard]] bool here() const noexcept { return ::getpid() == id_; }
  /// kState naming both processes if it is another one.
  [[nodiscard]] Status check(const char* what) const noexcept {
    if (here()) return {};
    return error(Code::kState, "%s belongs to process %d; after fork() process %d makes its own",
                 what, static_cast<int>(id_), static_cast<int>(::getpid()));
  }

 private:
  pid_t id_;
};

}  // namespace gen
