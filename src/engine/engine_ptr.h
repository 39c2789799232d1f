// SPDX-License-Identifier: Apache-2.0
// An address in an engine's memory. Only engines turn it into a pointer (access.h), since its bytes
// may be on a device. All other code can only offset, compare and pass it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gen::engine {

struct Access;

template <typename T>
class EnginePtr {
 public:
  constexpr EnginePtr() noexcept = default;
  constexpr EnginePtr(std::nullptr_t) noexcept {}
  /// Conversion to a pointer to const.
  template <typename U>
  requires(!std::is_same_v<U, T> &&
           std::is_same_v<const U, T>) constexpr EnginePtr(EnginePtr<U> other) noexcept
      : at_(other.address()) {}

  /// The same address with another element type.
  template <typename U>
  [[nodiscard]] constexpr EnginePtr<U> as() const noexcept {
    return EnginePtr<U>(at_);
  }
  /// For messages and tests; must not be dereferenced.
  [[nodiscard]] constexpr uintptr_t address() const noexcept { return at_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return at_ != 0; }

  friend constexpr EnginePtr operator+(EnginePtr p, std::ptrdiff_t n) noexcept {
    return EnginePtr(p.at_ + static_cast<uintptr_t>(n) * sizeof(T));
  }
  friend constexpr bool operator==(const EnginePtr&, const EnginePtr&) noexcept = default;

 private:
  friend struct Access;
  template <typename U>
  friend class EnginePtr;
  constexpr explicit EnginePtr(uintptr_t at) noexcept : at_(at) {}

  uintptr_t at_ = 0;
};

}  // namespace gen::engine
