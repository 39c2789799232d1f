// SPDX-License-Identifier: Apache-2.0
// The system allocator and Buffer. See allocator.h.
#include "base/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gen {
namespace {

class SystemAllocator final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    void* pointer = nullptr;
    if (posix_memalign(&pointer, std::max(align, sizeof(void*)), std::max<size_t>(bytes, 1)) != 0) {
      return error(Code::kOutOfMemory, "cannot allocate %zu bytes", bytes);
    }
    *out = pointer;
    return {};
  }
  void release(void* pointer, size_t) noexcept override { std::free(pointer); }
};

// Constant-initialised and trivially destroyed: no code runs at load or at exit.
constinit SystemAllocator heap;
static_assert(std::is_trivially_destructible_v<SystemAllocator>);

}  // namespace

Allocator& system_allocator() noexcept { return heap; }

Result<Buffer> Buffer::allocate(Allocator& allocator, size_t bytes, size_t align) noexcept {
  void* pointer = nullptr;
  GEN_TRY(allocator.allocate(bytes, align, &pointer));
  Buffer buffer;
  buffer.allocator_ = &allocator;
  buffer.data_ = static_cast<std::byte*>(pointer);
  buffer.size_ = bytes;
  return buffer;
}

Result<Buffer> Buffer::allocate_large(Allocator& allocator, size_t bytes) noexcept {
  constexpr size_t kHugePage = size_t{2} << 20;
  const bool large = bytes >= kHugePage;
  GEN_ASSIGN(Buffer buffer, allocate(allocator, bytes, large ? kHugePage : kBufferAlign));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Only advice: nothing depends on it.
  if (large) {
    static_cast<void>(madvise(buffer.data(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE));
  }
#endif
  return buffer;
}

std::byte* Buffer::detach() noexcept {
  allocator_ = nullptr;
  size_ = 0;
  return std::exchange(data_, nullptr);
}

void Buffer::reset() noexcept {
  if (data_ != nullptr) allocator_->release(data_, size_);
  allocator_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

}  // namespace gen
