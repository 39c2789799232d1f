// SPDX-License-Identifier: Apache-2.0
// See memory.h.
#include "engine/memory.h"

namespace gen::engine {

void EngineBuffer::reset() noexcept {
  if (memory_ != nullptr) memory_->give_back(data_, size_);
  memory_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

Result<EngineBuffer> EngineMemory::allocate(size_t bytes) {
  EngineBuffer buffer;
  if (bytes == 0) return buffer;
  GEN_TRY(take(bytes, &buffer.data_));
  buffer.memory_ = this;
  buffer.size_ = bytes;
  return buffer;
}

}  // namespace gen::engine
