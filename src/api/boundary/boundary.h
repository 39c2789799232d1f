// SPDX-License-Identifier: Apache-2.0
// The boundary between C and C++: every exported function runs its body through guard(), which
// turns a Status or an exception into a gen_status and, if the caller gave a gen_error, a one-line
// message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/home_process.h"
#include "base/log.h"
#include "base/status.h"
#include <generate/error.h>

namespace gen::api {

/// Writes a failure to `error` (may be null) and returns its code. OK does not touch `error`.
gen_status report(const Status& status, gen_error* error) noexcept;

/// The status for the current exception. Call it in a catch block only.
Status current_exception_status() noexcept;

/// Runs `body`, which returns a Status, and catches every exception. A log sink may not call the
/// library.
template <typename F>
gen_status guard(gen_error* error, F&& body) noexcept {
  if (in_log_sink()) return report({Code::kBusy, "a log sink cannot call the library"}, error);
  try {
    return report(body(), error);
  } catch (...) {
    return report(current_exception_status(), error);
  }
}

/// kInvalidArgument "<what> is NULL" if `pointer` is null.
inline Status not_null(const void* pointer, const char* what) noexcept {
  return pointer != nullptr ? Status() : error(Code::kInvalidArgument, "%s is NULL", what);
}

/// A handle of an object with threads or locks: it has a HomeProcess member named `home`.
template <typename T>
concept OfOneProcess = requires(const T& handle) {
  handle.home.check("");
};

/// The same, and kState in a process that does not own the object: a child of fork() is refused
/// wherever NULL is.
template <OfOneProcess T>
Status not_null(const T* handle, const char* what) noexcept {
  GEN_TRY(not_null(static_cast<const void*>(handle), what));
  return handle->home.check(what);
}

/// For functions without a status: true if the handle is not null and usable in this process.
template <OfOneProcess T>
bool usable(const T* handle) noexcept {
  return handle != nullptr && handle->home.here();
}

/// Deletes an object. Does nothing in a child of fork(), where the destructor would wait for
/// threads and locks of the parent or remove the parent's files; the memory is freed with the
/// process.
template <OfOneProcess T>
void end_handle(T* handle) noexcept {
  if (usable(handle)) delete handle;
}

/// Text passed as pointer and length; the length may be GEN_NUL_TERMINATED. NULL is the empty text
/// only with length 0.
Result<std::string_view> text_in(const char* text, size_t len, const char* what) noexcept;

/// Returns text by the buffer rule of the C API: NULL `buf` asks for the size; a buffer that is too
/// small is kOutOfRange with *n set.
Status text_out(std::string_view text, char* buf, size_t capacity, size_t* n) noexcept;

/// The same for arrays; `what` names the elements in messages.
template <typename T>
Status array_out(std::span<const T> values, T* buf, size_t capacity, size_t* n,
                 const char* what) noexcept {
  GEN_TRY(not_null(n, "n"));
  *n = values.size();
  if (buf == nullptr) return {};
  if (values.size() > capacity) {
    return error(Code::kOutOfRange, "%zu %s do not fit a buffer of %zu", values.size(), what,
                 capacity);
  }
  for (size_t i = 0; i < values.size(); ++i) buf[i] = values[i];
  return {};
}

}  // namespace gen::api
