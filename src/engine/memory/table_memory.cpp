// SPDX-License-Identifier: Apache-2.0
// See table_memory.h.
#include "engine/memory/table_memory.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "engine/access.h"

namespace gen::engine {
namespace {

/// Size of the host buffer from which device memory is filled.
constexpr size_t kFillBytes = size_t{64} << 10;

}  // namespace

Status TableMemory::run(const MemoryOp& op) {
  if (const auto* const copy = std::get_if<CopyArgs>(&op)) {
    if (copy->bytes == 0) return {};
    return allocator_->copy_across(Access::pointer(copy->to), Access::pointer(copy->from),
                                   copy->bytes);
  }
  if (const auto* const fill = std::get_if<FillArgs>(&op)) {
    const std::vector<std::byte> from(std::min(fill->bytes, kFillBytes), fill->value);
    for (size_t done = 0; done < fill->bytes;) {
      const size_t bytes = std::min(from.size(), fill->bytes - done);
      GEN_TRY(allocator_->copy_up(Access::pointer(fill->at) + done, from.data(), bytes));
      done += bytes;
    }
    return {};
  }
  return {Code::kUnsupported, "a device's memory without an engine moves no entries of caches"};
}

Status TableMemory::write(EnginePtr<std::byte> to, const void* from, size_t bytes) {
  return bytes > 0 ? allocator_->copy_up(Access::pointer(to), from, bytes) : Status();
}

Status TableMemory::read(void* to, EnginePtr<const std::byte> from, size_t bytes) {
  return bytes > 0 ? allocator_->copy_down(to, Access::pointer(from), bytes) : Status();
}

Status TableMemory::take(size_t bytes, EnginePtr<std::byte>* out) {
  void* made = nullptr;
  GEN_TRY(allocator_->allocate(bytes, &made));
  *out = engine_ptr(static_cast<std::byte*>(made));
  return {};
}

void TableMemory::give_back(EnginePtr<std::byte> at, size_t) noexcept {
  allocator_->release(Access::pointer(at));
}

}  // namespace gen::engine
