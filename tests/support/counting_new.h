// SPDX-License-Identifier: Apache-2.0
// Replaces operator new of the whole program by one that counts, and fails on demand. Include in
// exactly one file of a test program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace gen::test {
inline std::atomic<size_t> news{0};
inline std::atomic<size_t> new_bytes{0};  // of all of them, those given back included
inline std::atomic<size_t> fail_new_at{~size_t{0}};  // index of the one that fails

inline std::atomic<size_t> tell_new_at{~size_t{0}};  // index of the one that calls tell_new()
inline void (*tell_new)() = nullptr;

inline void* counted_new(size_t bytes, size_t align) {
  const size_t index = news.fetch_add(1);
  if (index == tell_new_at && tell_new != nullptr) tell_new();
  if (index == fail_new_at) throw std::bad_alloc();
  new_bytes += bytes;
  const size_t size = (bytes + align - 1) / align * align;
  void* pointer = std::aligned_alloc(align, size == 0 ? align : size);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
}  // namespace gen::test

// Not inlined, or gcc sees a pointer from new reach free and warns; and all forms, or the
// sanitizer's own new meets this delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  return gen::test::counted_new(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t align) {
  return gen::test::counted_new(bytes, static_cast<size_t>(align));
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++gen::test::news;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, size_t, std::align_val_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, const std::nothrow_t&) noexcept {
  std::free(pointer);
}
