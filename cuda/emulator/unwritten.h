// SPDX-License-Identifier: Apache-2.0
// What device memory holds before somebody writes it: words that depend on their address, NaNs for
// whoever takes them for floats of 32 or 16 bits. Kernels write through plain pointers, which
// nobody sees, but a word that still is what it was at first has been written by no kernel: that
// one stores the very word of its place happens once in 2^32 words of random bits, and never with
// numbers. What copies and fills write, any bits that a caller chooses, DeviceMemory remembers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gen::cuda::emulator {

/// Bytes of a word.
inline constexpr size_t kUnwrittenWord = 4;

/// The word at an address, a multiple of kUnwrittenWord. Never all ones, which integers may be.
inline uint32_t unwritten_word(uintptr_t at) {
  uint64_t mixed = at / kUnwrittenWord * 0x9E3779B97F4A7C15U;  // the end of splitmix64
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBU;
  return 0xFF81FF81U | static_cast<uint32_t>(mixed >> 32 & 0x003E003EU);
}

/// Makes [at, at + bytes) unwritten; `at` is a multiple of kUnwrittenWord.
inline void fill_unwritten(void* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  auto* const to = static_cast<std::byte*>(at);
  for (size_t i = 0; i < bytes; i += kUnwrittenWord) {
    const uint32_t word = unwritten_word(begin + i);
    std::memcpy(to + i, &word, bytes - i < kUnwrittenWord ? bytes - i : kUnwrittenWord);
  }
}

}  // namespace gen::cuda::emulator
