// SPDX-License-Identifier: Apache-2.0
// Under the address sanitizer, which has an operator new of its own: one that is malloc's, as
// libstdc++'s is, so that it fails with it. See failing_memory.h.
#include <cstdlib>
#include <new>

#define EXPORT [[gnu::noinline, gnu::visibility("default")]]

namespace {

void* take(size_t bytes) {
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void* take_aligned(size_t bytes, size_t align) noexcept {
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}

}  // namespace

EXPORT void* operator new(size_t bytes) { return take(bytes); }
EXPORT void* operator new[](size_t bytes) { return take(bytes); }
EXPORT void* operator new(size_t bytes, std::align_val_t align) {
  void* block = take_aligned(bytes, static_cast<size_t>(align));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
EXPORT void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
EXPORT void* operator new(size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  return take_aligned(bytes, static_cast<size_t>(align));
}
EXPORT void operator delete(void* block) noexcept { std::free(block); }
EXPORT void operator delete[](void* block) noexcept { std::free(block); }
EXPORT void operator delete(void* block, size_t) noexcept { std::free(block); }
EXPORT void operator delete[](void* block, size_t) noexcept { std::free(block); }
EXPORT void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
EXPORT void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(block);
}
