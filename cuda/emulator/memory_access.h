// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/memory.cuh. Threads take turns, so order needs nothing.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/device/words.h"
#include "cuda/emulator/machine.h"

namespace gen::cuda::emulator {

/// Fails unless `bytes` at the address are aligned to their size and a device's or pinned.
void check_access(const void* at, size_t bytes);
/// Counts the bytes where count_reads() asks for it.
void count_read(const void* at, size_t bytes);
/// Both, and fails unless somebody has written them, as far as Options::finds_unwritten asks for
/// it.
void check_read(const void* at, size_t bytes);
bool finds_unwritten();
/// Whether nobody had written the word at an address of device memory when it held `word`.
bool is_unwritten(uintptr_t at, uint32_t word);

template <typename T>
T load_vector(const void* from) {
  check_read(from, sizeof(T));
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void store_vector(void* to, T value) {
  check_access(to, sizeof(T));
  std::memcpy(to, &value, sizeof value);
}

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

inline uint32_t load_constant4(const void* from) { return emulator::load_vector<uint32_t>(from); }
inline UInt2 load_constant8(const void* from) { return emulator::load_vector<UInt2>(from); }
inline UInt4 load_constant16(const void* from) { return emulator::load_vector<UInt4>(from); }
inline UInt4 load_once16(const void* from) { return emulator::load_vector<UInt4>(from); }
inline UInt2 load8(const void* from) { return emulator::load_vector<UInt2>(from); }
inline UInt4 load16(const void* from) { return emulator::load_vector<UInt4>(from); }
inline void store8(void* to, UInt2 value) { emulator::store_vector(to, value); }
inline void store16(void* to, UInt4 value) { emulator::store_vector(to, value); }

inline void prefetch(const void*) {}
inline void fence_block() {}
inline void fence_device() {}
inline uint32_t load_acquire(const uint32_t* from) { return emulator::load_vector<uint32_t>(from); }
inline void store_release(uint32_t* to, uint32_t value) { emulator::store_vector(to, value); }
inline uint32_t add_acquire_release(uint32_t* to, uint32_t value) {
  const auto old = emulator::load_vector<uint32_t>(to);
  emulator::store_vector(to, old + value);
  return old;
}

}  // namespace gen::cuda::device
