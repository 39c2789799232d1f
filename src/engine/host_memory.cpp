// SPDX-License-Identifier: Apache-2.0
// See host_memory.h.
#include "engine/host_memory.h"

#include "engine/access.h"

namespace gen::engine {

Status HostMemory::take(size_t bytes, EnginePtr<std::byte>* out) {
  GEN_ASSIGN(Buffer buffer, Buffer::allocate(allocator_, bytes));
  *out = engine_ptr(buffer.detach());
  return {};
}

void HostMemory::give_back(EnginePtr<std::byte> at, size_t bytes) noexcept {
  allocator_.release(Access::pointer(at), bytes);
}

}  // namespace gen::engine
