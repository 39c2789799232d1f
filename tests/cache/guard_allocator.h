// SPDX-License-Identifier: Apache-2.0
// An allocator for tests: every block ends at a page that cannot be touched, blocks are counted and
// filled with 0xA5, and the n-th allocation can be made to fail.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>

#include "base/allocator.h"
#include "engine/memory/host_memory.h"

namespace gen::cache {

class GuardAllocator final : public Allocator {
 public:
  ~GuardAllocator() {
    for (const auto& [pointer, block] : blocks_) munmap(block.base, block.mapped);
  }

  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    if (fail_after_ == 0) return error(Code::kOutOfMemory, "no %zu bytes for this test", bytes);
    if (fail_after_ > 0) --fail_after_;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (bytes > (size_t{1} << 40))
      return error(Code::kOutOfMemory, "cannot allocate %zu bytes", bytes);
    const size_t usable = (bytes + align + page - 1) / page * page;
    void* base = mmap(nullptr, usable + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return error(Code::kOutOfMemory, "cannot map %zu bytes", bytes);
    auto* end = static_cast<std::byte*>(base) + usable;
    mprotect(end, page, PROT_NONE);
    auto start = reinterpret_cast<uintptr_t>(end) - bytes;
    start -= start % align;
    *out = reinterpret_cast<void*>(start);
    if (bytes < (size_t{1} << 20)) std::memset(*out, 0xA5, bytes);
    blocks_[*out] = {base, usable + page, bytes};
    ++total_;
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    const auto found = blocks_.find(pointer);
    if (found == blocks_.end() || found->second.bytes != bytes) {
      bad_release_ = true;
      return;
    }
    munmap(found->second.base, found->second.mapped);
    blocks_.erase(found);
  }

  /// The same as engine memory.
  operator engine::EngineMemory&() noexcept { return memory_; }

  /// Allocations from now on that succeed before all others fail; -1 for no failures.
  void fail_after(int count) { fail_after_ = count; }
  [[nodiscard]] size_t live_blocks() const { return blocks_.size(); }
  [[nodiscard]] size_t live_bytes() const {
    size_t bytes = 0;
    for (const auto& [pointer, block] : blocks_) bytes += block.bytes;
    return bytes;
  }
  [[nodiscard]] int total() const { return total_; }
  [[nodiscard]] bool bad_release() const { return bad_release_; }

 private:
  struct Block {
    void* base;
    size_t mapped;
    size_t bytes;
  };
  std::map<void*, Block> blocks_;
  int fail_after_ = -1;
  int total_ = 0;
  bool bad_release_ = false;
  engine::HostMemory memory_{*this};
};

}  // namespace gen::cache
