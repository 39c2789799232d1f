// SPDX-License-Identifier: Apache-2.0
// Calls of host functions. Exceptions stop here: they become a failure of the surrounding call, or
// are dropped if it cannot fail.
#pragma once

#include <exception>

#include "base/callbacks.h"
#include "base/status.h"
#include <generate/base.h>
#include <generate/error.h>
#include <generate/model.h>

namespace gen::api {

/// kInternal with the message of the current exception. Call it in a catch block only.
inline Status thrown_by(const char* function) noexcept {
  try {
    throw;
  } catch (const std::exception& exception) {
    return error(Code::kInternal, "%s threw: %s", function, exception.what());
  } catch (...) {
    return error(Code::kInternal, "%s threw", function);
  }
}

/// The Status for a status and a message returned by a host function, which may have written
/// neither. `whose` and `function` name it if it gave no message.
inline Status host_outcome(gen_status given, gen_error& said, const char* whose,
                           const char* function) {
  if (given == GEN_OK) return {};
  said.message[sizeof said.message - 1] = '\0';
  const char* const colon = said.message[0] != '\0' ? ": " : "";
  if (given > GEN_OK || given < GEN_ERROR_INTERNAL) {
    return error(Code::kModel, "%s%s gave %d, which is not a status%s%s", whose, function, given,
                 colon, said.message);
  }
  const Code code{given};
  if (said.message[0] != '\0') return error(code, "%s", said.message);
  return error(code, "%s%s gave %s", whose, function, gen_status_name(given));
}

/// A progress callback of the host; may be null. It runs without locks and belongs to no object, so
/// it may call any function.
class Progress {
 public:
  Progress(gen_progress_callback function, void* user) noexcept
      : function_(function), user_(user) {}
  /// False if the callback asked to stop or threw.
  bool operator()(double share) noexcept {
    if (function_ == nullptr) return true;
    try {
      return function_(user_, share) == 0;
    } catch (...) {
      thrown_ = thrown_by("the progress callback");
      return false;
    }
  }
  /// OK unless the callback threw.
  [[nodiscard]] const Status& thrown() const noexcept { return thrown_; }

 private:
  gen_progress_callback function_;
  void* user_;
  Status thrown_;
};

/// Runs `call`, which calls a function of the table and returns a Status.
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
  } catch (...) {  // the function has no way to report it
  }
}

}  // namespace gen::api
