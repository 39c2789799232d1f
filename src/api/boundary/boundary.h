// SPDX-License-Identifier: Apache-2.0
// The border between C and C++: every exported function runs its body through guard(), which turns
// a Status or an exception into a gen_status and, if the caller gave a gen_error, one line of text.
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

/// Writes a failure to `error` (if any) and returns its code; OK leaves `error` alone.
gen_status report(const Status& status, gen_error* error) noexcept;

/// What the exception being handled means. Call in a catch block only.
Status current_exception_status() noexcept;

/// Runs `body` (returns Status); nothing it throws gets out. A log sink may call nothing.
template <typename F>
gen_status guard(gen_error* error, F&& body) noexcept {
  if (in_log_sink()) return report({Code::kBusy, "a log sink cannot call the library"}, error);
  try {
    return report(body(), error);
  } catch (...) {
    return report(current_exception_status(), error);
  }
}

/// kInvalidArgument "<what> is NULL" unless `pointer` is set.
inline Status not_null(const void* pointer, const char* what) noexcept {
  return pointer != nullptr ? Status() : error(Code::kInvalidArgument, "%s is NULL", what);
}

/// A handle of an object with threads or locks: it has a HomeProcess by the name of home.
template <typename T>
concept OfOneProcess = requires(const T& handle) {
  handle.home.check("");
};

/// The same, and kState in a process that the object does not belong to: so wherever NULL is
/// refused, a child of fork() is.
template <OfOneProcess T>
Status not_null(const T* handle, const char* what) noexcept {
  GEN_TRY(not_null(static_cast<const void*>(handle), what));
  return handle->home.check(what);
}

/// For functions without a status: whether there is a handle, and it can be used here.
template <OfOneProcess T>
bool usable(const T* handle) noexcept {
  return handle != nullptr && handle->home.here();
}

/// Ends an object; in a child of fork() nothing happens, since its end would wait for threads and
/// locks of the parent, or remove the parent's files. The memory goes with the process.
template <OfOneProcess T>
void end_handle(T* handle) noexcept {
  if (usable(handle)) delete handle;
}

/// Text that came in as pointer and length, where the length may be GEN_NUL_TERMINATED. NULL is the
/// empty text only together with the length 0.
Result<std::string_view> text_in(const char* text, size_t len, const char* what) noexcept;

/// Text that goes out by the rule of c-api: NULL `buf` asks the size; too small is kOutOfRange with
/// *n set.
Status text_out(std::string_view text, char* buf, size_t capacity, size_t* n) noexcept;

/// The same for arrays; `what` names the elements.
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
