// SPDX-License-Identifier: Apache-2.0
// What the classes of generate.hpp share: failures as exceptions, handles that free themselves, and the
// flag that stops calls. See generate.hpp.
#ifndef GENERATE_HANDLE_HPP
#define GENERATE_HANDLE_HPP

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "generate.h"

namespace gen {

/// A failed call: a GEN_ERROR_… status and a line that names the value and the limit.
class Error : public std::runtime_error {
 public:
  Error(gen_status code, const char *message, std::shared_ptr<const gen_result> partial = nullptr)
      : std::runtime_error(message), code_(code), partial_(std::move(partial)) {}
  gen_status code() const noexcept { return code_; }
  const char *name() const noexcept { return gen_status_name(code_); }
  /// What a generation had produced when it failed or was cancelled; NULL for other calls. Lives as
  /// long as the error.
  const gen_result *partial() const noexcept { return partial_.get(); }

 private:
  gen_status code_;
  std::shared_ptr<const gen_result> partial_;
};

namespace detail {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T *handle) const noexcept {
    Free(handle);
  }
};

template <class Function, class... Args>
void call(Function function, Args... args) {
  gen_error error;
  if (const gen_status status = function(args..., &error)) throw Error(status, error.message);
}

/// An empty view may have a null address, which the library would refuse.
inline const char *data(std::string_view text) noexcept { return text.data() != nullptr ? text.data() : ""; }

/// The object that a function(args…, T **out, gen_error *) makes.
template <class T, class Function, class... Args>
T *made(Function function, Args... args) {
  T *out = nullptr;
  call(function, args..., &out);
  return out;
}

/// The text that a function(args…, buf, capacity, n, gen_error *) writes.
template <class Buffer, class Function, class... Args>
Buffer filled(Function function, Args... args) {
  Buffer buffer;
  size_t n = 0;
  call(function, args..., nullptr, size_t{0}, &n);
  do {  // the text may grow between the two calls
    const size_t room = n + (std::is_same_v<Buffer, std::string> ? 1 : 0);
    buffer.resize(room);
    gen_error error;
    const gen_status status = function(args..., buffer.data(), room, &n, &error);
    if (status == GEN_OK) break;
    if (status != GEN_ERROR_OUT_OF_RANGE || n < room) throw Error(status, error.message);
  } while (true);
  buffer.resize(n);
  return buffer;
}

/// Owns a handle. Moves, does not copy.
template <class T, auto Free>
class Handle {
 public:
  explicit Handle(T *owned = nullptr) noexcept : owned_(owned) {}
  T *get() const noexcept { return owned_.get(); }

 protected:
  std::unique_ptr<T, Deleter<Free>> owned_;
};

}  // namespace detail

/// A flag that stops, from any thread, the calls whose sampling has it. It may be destroyed before
/// these calls end.
class Cancel : public detail::Handle<gen_cancel, gen_cancel_free> {
 public:
  Cancel() : Handle(detail::made<gen_cancel>(gen_cancel_new)) {}
  void fire() noexcept { gen_cancel_fire(get()); }
  void reset() noexcept { gen_cancel_reset(get()); }
};

}  // namespace gen

#endif  // GENERATE_HANDLE_HPP
