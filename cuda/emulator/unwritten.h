// SPDX-License-Identifier: Apache-2.0
// What device memory holds before somebody writes it: words that depend on their address, NaNs for
// whoever takes them for floats of 32 or 16 bits. Kernels write through plain pointers, which
// nobody sees, but a word that still is what it was at first has been written by nobody; that
// something else is the very word of its place is as good as impossible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gen::cuda::emulator {

/// Bytes of a word.
inline constexpr size_t kUnwrittenWord = 4;

/// The word at an address, a multiple of kUnwrittenWord. Never all ones, which integers may be.
inline uint32_t unwritten_word(uintptr_t at) {
  const uint32_t mixed = static_cast<uint32_t>(at / kUnwrittenWord) * 0x9E3779B1U;
  return 0xFF80FF80U | (mixed & 0x003E0000U) | (mixed >> 26 & 0x3EU) | 0x00010001U;
}

/// The first of the words within [at, at + bytes) that nobody has written, or null.
inline const void* find_unwritten(const void* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  const uintptr_t first = (begin + kUnwrittenWord - 1) / kUnwrittenWord * kUnwrittenWord;
  for (uintptr_t word = first; word + kUnwrittenWord <= begin + bytes; word += kUnwrittenWord) {
    uint32_t now;
    std::memcpy(&now, static_cast<const std::byte*>(at) + (word - begin), sizeof now);
    if (now == unwritten_word(word)) return static_cast<const std::byte*>(at) + (word - begin);
  }
  return nullptr;
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
