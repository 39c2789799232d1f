// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulator/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "cuda/device/memory.cuh"
#include "cuda/emulator/machine.h"
#include "cuda/emulator/unwritten.h"

namespace gen::cuda::emulator {
void SharedMemory::reset(size_t dynamic_bytes) {
  // Bytes are NaNs until somebody writes them.
  for (const size_t chunk : touched_) {
    std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(chunk * kChunk), kChunk, Byte());
    std::memset(data_.data() + chunk * kChunk, 0xFF, kChunk);
    is_touched_[chunk] = false;
  }
  touched_.clear();
  const size_t chunks = (dynamic_begin() + dynamic_bytes + kChunk - 1) / kChunk;
  if (is_touched_.size() < chunks) {
    data_.resize(chunks * kChunk, std::byte{0xFF});
    bytes_.resize(chunks * kChunk);
    is_touched_.resize(chunks, false);
  }
  statics_.clear();
  static_bytes_ = 0;
  dynamic_bytes_ = dynamic_bytes;
}

void SharedMemory::touch(size_t at, size_t bytes) {
  for (size_t chunk = at / kChunk; chunk * kChunk < at + bytes; ++chunk) {
    if (is_touched_[chunk]) continue;
    is_touched_[chunk] = true;
    touched_.push_back(chunk);
  }
}

size_t SharedMemory::place(const void* key, size_t bytes, size_t align, const char* name) {
  for (const Static& one : statics_) {
    if (one.key == key) return one.at;
  }
  align = std::max<size_t>(align, 16);
  const size_t at = (static_bytes_ + align - 1) / align * align;
  if (at + bytes > kStaticSharedBytes || at + bytes + dynamic_bytes_ > kSharedBytes) {
    fail("static shared arrays need %zu bytes with %s, over %zu, %zu with the dynamic ones",
         at + bytes, name, kStaticSharedBytes, kSharedBytes);
  }
  static_bytes_ = at + bytes;
  statics_.push_back({key, at});
  return at;
}

SharedMemory::Mark SharedMemory::mark(const Thread& thread) {
  return {thread.linear, thread.block->epoch, thread.block->warps[thread.warp()].epoch};
}

/// Whether something stands between an access and one of `now`.
bool SharedMemory::ordered(const Mark& before, const Thread& now) {
  if (before.thread == kNobody || before.thread == now.linear) return true;
  if (before.epoch != now.block->epoch) return true;
  return before.thread / 32 == now.warp() &&
         before.warp_epoch != now.block->warps[now.warp()].epoch;
}

void SharedMemory::read(const Thread& thread, size_t at, void* to, size_t bytes, const char* name) {
  for (size_t i = at; i < at + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (!byte.known) fail("reads uninitialised shared memory, %s", name);
    if (!ordered(byte.write, thread)) {
      fail("race: reads shared memory, %s, that thread %u writes without a barrier between them",
           name, byte.write.thread);
    }
    byte.read = mark(thread);
  }
  std::memcpy(to, data_.data() + at, bytes);
}

void SharedMemory::check_write(const Thread& thread, size_t at, const void* from, size_t bytes,
                               const char* name) {
  for (size_t i = at; i < at + bytes; ++i) {
    const Byte& byte = bytes_[i];
    // Several threads may write the same.
    const bool same = from != nullptr && byte.known &&
                      std::memcmp(&data_[i], static_cast<const std::byte*>(from) + i - at, 1) == 0;
    if (same) continue;
    const bool after_write = ordered(byte.write, thread);
    if (after_write && ordered(byte.read, thread)) continue;
    fail("race: writes shared memory, %s, that thread %u %s without a barrier between them", name,
         after_write ? byte.read.thread : byte.write.thread, after_write ? "reads" : "writes");
  }
}

void SharedMemory::write(const Thread& thread, size_t at, const void* from, size_t bytes,
                         const char* name) {
  check_write(thread, at, from, bytes, name);
  touch(at, bytes);
  for (size_t i = at; i < at + bytes; ++i) {
    bytes_[i].write = mark(thread);
    bytes_[i].known = true;
    bytes_[i].atomic = false;
  }
  std::memcpy(data_.data() + at, from, bytes);
}

void* SharedMemory::atomic(const Thread& thread, size_t at, size_t bytes, const char* name) {
  for (size_t i = at; i < at + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (!byte.known) fail("reads uninitialised shared memory, %s", name);
    if (!byte.atomic) check_write(thread, i, nullptr, 1, name);
    byte.write = mark(thread);
    byte.atomic = true;
  }
  return data_.data() + at;
}

void SharedMemory::begin_copy(const Thread& thread, size_t at, size_t bytes, const char* name) {
  check_write(thread, at, nullptr, bytes, name);
  touch(at, bytes);
  for (size_t i = at; i < at + bytes; ++i) {
    bytes_[i].write = mark(thread);
    bytes_[i].known = false;
    bytes_[i].atomic = false;
  }
}

void SharedMemory::end_copy(size_t at, const void* from, size_t bytes, const void* address) {
  if (from == nullptr) {
    std::memset(data_.data() + at, 0, bytes);
  } else {
    std::memcpy(data_.data() + at, from, bytes);
  }
  for (size_t i = 0; i < bytes; i += kUnwrittenWord) {
    uint32_t word;
    std::memcpy(&word, data_.data() + at + i, sizeof word);
    const bool known =
        address == nullptr || !is_unwritten(reinterpret_cast<uintptr_t>(address) + i, word);
    for (size_t k = i; k < i + kUnwrittenWord; ++k) bytes_[at + k].known = known;
  }
}

}  // namespace gen::cuda::emulator
