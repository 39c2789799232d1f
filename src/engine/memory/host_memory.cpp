// SPDX-License-Identifier: Apache-2.0
// See host_memory.h.
#include "engine/memory/host_memory.h"

#include <cstring>
#include <type_traits>

#include "engine/access.h"
#include "engine/kv/memory_ops_run.h"

namespace gen::engine {
namespace {

// Constant-initialised and trivially destroyed: no code runs at load or at exit.
constinit HostMemory heap_memory;
static_assert(std::is_trivially_destructible_v<HostMemory>);

}  // namespace

Status HostMemory::run(const MemoryOp& op) { return run_memory_op(op, 0); }

Status HostMemory::write(EnginePtr<std::byte> to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(Access::pointer(to), from, bytes);
  return {};
}

Status HostMemory::read(void* to, EnginePtr<const std::byte> from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, Access::pointer(from), bytes);
  return {};
}

std::byte* HostMemory::host(EnginePtr<std::byte> at) noexcept { return Access::pointer(at); }

Status HostMemory::take(size_t bytes, EnginePtr<std::byte>* out) {
  GEN_ASSIGN(Buffer buffer, Buffer::allocate_large(allocator(), bytes));
  *out = engine_ptr(buffer.detach());
  return {};
}

void HostMemory::give_back(EnginePtr<std::byte> at, size_t bytes) noexcept {
  allocator().release(Access::pointer(at), bytes);
}

EngineMemory& system_memory() noexcept { return heap_memory; }

}  // namespace gen::engine
