// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every fallible function inside the library reports. Codes are those of
// gen_status (include/generate/error.h), so that api/ converts without a table. An OK status is one
// null pointer; a failure owns one line of text that names the thing and the limit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gen {

/// Numbers are frozen and equal gen_status.
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = -1,
  kOutOfMemory = -2,
  kIo = -3,
  kFormat = -4,
  kUnsupported = -5,
  kCacheFull = -6,
  kPoolExhausted = -7,
  kOutOfRange = -8,
  kSequence = -9,
  kBusy = -10,
  kCancelled = -11,
  kGrammar = -12,
  kDevice = -13,
  kContextFull = -14,
  kState = -15,
  kModel = -16,
  kTokenizer = -17,
  kInternal = -18,
};

/// The outcome of a call. Never throws while reporting: if there is no memory for the text, the
/// code survives with an empty message.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string_view message) noexcept;
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) noexcept;
  Status& operator=(const Status& other) noexcept;

  [[nodiscard]] bool ok() const noexcept { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const noexcept { return code_; }
  /// Empty for OK.
  [[nodiscard]] const char* message() const noexcept { return message_ ? message_->c_str() : ""; }

 private:
  Code code_ = Code::kOk;
  std::unique_ptr<std::string> message_;
};

/// Builds a failure from printf-style arguments.
[[gnu::format(printf, 2, 3)]] Status error(Code code, const char* format, ...) noexcept;

/// A value or the failure that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status status) noexcept                             // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(status)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  [[nodiscard]] T& value() & noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  /// OK when there is a value.
  [[nodiscard]] Status status() const noexcept {
    return ok() ? Status() : *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Status> state_;
};

namespace detail {
inline Status to_status(Status&& status) noexcept { return std::move(status); }
template <typename T>
Status to_status(Result<T>&& result) noexcept {
  return result.status();
}
}  // namespace detail

}  // namespace gen

/// Propagates a failure of a Status or Result expression.
#define GEN_TRY(expression)                                        \
  do {                                                             \
    if (auto gen_try_ = (expression); !gen_try_.ok()) [[unlikely]] \
      return ::gen::detail::to_status(std::move(gen_try_));        \
  } while (false)

#define GEN_CONCAT_INNER_(a, b) a##b
#define GEN_CONCAT_(a, b) GEN_CONCAT_INNER_(a, b)

/// Declares or assigns `target` from a Result, or propagates its failure:
/// GEN_ASSIGN(auto file, MappedFile::open(path));
#define GEN_ASSIGN(target, expression) \
  GEN_ASSIGN_INNER_(GEN_CONCAT_(gen_result_, __LINE__), target, expression)
#define GEN_ASSIGN_INNER_(result, target, expression) \
  auto result = (expression);                         \
  if (!result.ok()) [[unlikely]]                      \
    return result.status();                           \
  target = std::move(result).value()

/// For our own bugs only; compiled out of release builds.
#ifdef NDEBUG
#define GEN_ASSERT(condition) \
  do {                        \
  } while (false && (condition))
#else
#define GEN_ASSERT(condition)      \
  do {                             \
    if (!(condition)) [[unlikely]] \
      __builtin_trap();            \
  } while (false)
#endif
