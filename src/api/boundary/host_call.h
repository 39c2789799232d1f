// SPDX-License-Identifier: Apache-2.0
// Calls of the host's functions. Whatever such a function throws ends here: it becomes a failure of
// the call around it, or nothing where nobody can be told.
#pragma once

#include <exception>

#include "base/callbacks.h"
#include "base/status.h"
#include <generate/base.h>
#include <generate/error.h>
#include <generate/model.h>

namespace gen::api {

/// kInternal with what the exception being handled says. Call in a catch block only.
inline Status thrown_by(const char* function) noexcept {
  try {
    throw;
  } catch (const std::exception& exception) {
    return error(Code::kInternal, "%s threw: %s", function, exception.what());
  } catch (...) {
    return error(Code::kInternal, "%s threw", function);
  }
}

/// What a function of the host says with a status and a message, of which it may have written
/// neither. `whose` and `function` name it where it gives no message of its own.
inline Status host_outcome(gen_status given, gen_error& said, const char* whose,
                           const char* function) {
  if (given == GEN_OK) return {};
  said.message[sizeof said.message - 1] = '\0';
  const char* const colon = said.message[0] != '\0' ? ": " : "";
  if (given > GEN_OK || given < GEN_ERROR_INTERNAL) {
    return error(Code::kModel, "%s%s gave %d, which is no status%s%s", whose, function, given,
                 colon, said.message);
  }
  const Code code{given};
  if (said.message[0] != '\0') return error(code, "%s", said.message);
  return error(code, "%s%s gave %s", whose, function, gen_status_name(given));
}

/// A progress callback of the host, which may be null. It runs where nothing is held and belongs to
/// no object, so it may call everything.
class Progress {
 public:
  Progress(gen_progress_callback function, void* user) noexcept
      : function_(function), user_(user) {}
  /// False if the host wants to stop, or threw.
  bool operator()(double share) noexcept {
    if (function_ == nullptr) return true;
    try {
      return function_(user_, share) == 0;
    } catch (...) {
      thrown_ = thrown_by("the progress callback");
      return false;
    }
  }
  /// OK unless it threw.
  [[nodiscard]] const Status& thrown() const noexcept { return thrown_; }

 private:
  gen_progress_callback function_;
  void* user_;
  Status thrown_;
};

/// Runs `call`, which calls a function of the table and gives a Status.
template <typename F>
Status host_status(Callbacks& callbacks, const char* function, F&& call) noexcept {
  const Callbacks::Inside inside(callbacks);
  try {
    return call();
  } catch (...) {
    return thrown_by(function);
  }
}

/// Runs `call`, which calls a function of the table that cannot fail.
template <typename F>
void host_notice(Callbacks& callbacks, F&& call) noexcept {
  const Callbacks::Inside inside(callbacks);
  try {
    call();
  } catch (...) {  // nobody to tell
  }
}

}  // namespace gen::api
