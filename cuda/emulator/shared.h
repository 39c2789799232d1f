// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/shared.cuh: an array is a range of the block's shared memory,
// an element a place that is read or written at once, with every check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/emulator/machine.h"

#define GEN_SHARED(type, name, count)            \
  static const char gen_key_##name = 0;          \
  const ::gen::cuda::device::Shared<type> name = \
      ::gen::cuda::device::Shared<type>::declare(&gen_key_##name, (count), #name)

namespace gen::cuda::device {

template <typename T>
class SharedElement {
 public:
  SharedElement(size_t at, const char* name) : at_(at), name_(name) {}
  SharedElement(const SharedElement&) = delete;

  // Only of an element just named: one that was kept would be read later than nvcc reads it.
  operator T() const&& { return load(); }  // NOLINT(google-explicit-constructor)
  T operator=(T value) const&& { return store(value); }
  T operator=(SharedElement&& other) const&& { return store(other.load()); }
  T operator+=(T value) const&& { return store(static_cast<T>(load() + value)); }
  T operator-=(T value) const&& { return store(static_cast<T>(load() - value)); }
  T operator*=(T value) const&& { return store(static_cast<T>(load() * value)); }
  T operator|=(T value) const&& { return store(static_cast<T>(load() | value)); }

 private:
  T load() const {
    T value;
    emulator::Thread& thread = emulator::self();
    thread.block->shared.read(thread, at_, &value, sizeof value, name_);
    return value;
  }
  T store(T value) const {
    emulator::Thread& thread = emulator::self();
    thread.block->shared.write(thread, at_, &value, sizeof value, name_);
    return value;
  }

  size_t at_;
  const char* name_;
};

template <typename T>
class Shared {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Shared(size_t at, size_t count, const char* name) : at_(at), count_(count), name_(name) {
    if (at % alignof(T) != 0) {
      emulator::fail("misaligned: %s begins at byte %zu, not a multiple of %zu", name, at,
                     alignof(T));
    }
  }
  static Shared declare(const void* key, size_t count, const char* name) {
    auto& shared = emulator::self().block->shared;
    return Shared(shared.place(key, count * sizeof(T), alignof(T), name), count, name);
  }

  template <typename Index>
  SharedElement<T> operator[](Index i) const {
    return SharedElement<T>(place(i, sizeof(T)), name_);
  }
  template <typename U>
  Shared<U> as() const {
    return Shared<U>(at_, count_ * sizeof(T) / sizeof(U), name_);
  }
  template <typename Index>
  Shared subspan(Index first, size_t count) const {
    if (count == 0) return Shared(at_, 0, name_);
    place(first, count * sizeof(T));
    return Shared(at_ + static_cast<size_t>(first) * sizeof(T), count, name_);
  }
  /// Where element i lies in the block's shared memory, if `bytes` from there on are the array's.
  template <typename Index>
  size_t place(Index i, size_t bytes) const {
    const auto first = static_cast<size_t>(i);  // negative ones become large
    if (first >= count_ || bytes > (count_ - first) * sizeof(T)) {
      emulator::fail("out of bounds: %zu bytes at %s[%lld] of %zu elements", bytes, name_,
                     static_cast<long long>(i), count_);
    }
    return at_ + first * sizeof(T);
  }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  size_t at_;
  size_t count_;
  const char* name_;
};

template <typename T>
Shared<T> dynamic_shared(size_t offset, size_t count) {
  const auto& shared = emulator::self().block->shared;
  if (offset > shared.dynamic_bytes() || count > (shared.dynamic_bytes() - offset) / sizeof(T)) {
    emulator::fail("out of bounds: %zu elements of %zu bytes from byte %zu of %zu dynamic ones",
                   count, sizeof(T), offset, shared.dynamic_bytes());
  }
  return Shared<T>(shared.dynamic_begin() + offset, count, "dynamic shared memory");
}

}  // namespace gen::cuda::device
