// SPDX-License-Identifier: Apache-2.0
// Conversion of addresses in an engine's memory to pointers and back. Only engines and their tests
// may include this (tests/check/layers.txt), since the address may be in a device's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/engine_ptr.h"

namespace gen::engine {

struct Access {
  /// A pointer is an address plus `distance`, which is 0 for ordinary host memory.
  template <typename T>
  static T* pointer(EnginePtr<T> at, std::ptrdiff_t distance = 0) noexcept {
    if (!at) return nullptr;
    return reinterpret_cast<T*>(at.at_ + static_cast<uintptr_t>(distance));
  }
  template <typename T>
  static EnginePtr<T> address(T* pointer) noexcept {
    return EnginePtr<T>(reinterpret_cast<uintptr_t>(pointer));
  }
};

/// The address of a pointer, for an engine whose memory is host memory.
template <typename T>
EnginePtr<T> engine_ptr(T* pointer) noexcept {
  return Access::address(pointer);
}

}  // namespace gen::engine
