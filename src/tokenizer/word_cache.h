// SPDX-License-Identifier: Apache-2.0
// WordCache: the words of the current text and the positions of their ids in the output, so that
// the ids of a repeated word are copied. It lives for one call, so nothing is shared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gen::tokenizer {

/// Storage: one slot per hash value, the newer word wins: no search, no growth, and a text made of
/// words of equal hash costs no more than without a cache.
class WordCache {
 public:
  struct Slot {
    std::string_view word;
    size_t first = 0;  // its ids are out[first, first + count)
    size_t count = 0;
  };

  /// None for a short text.
  explicit WordCache(size_t text_bytes) {
    if (text_bytes >= 512) slots_.resize(std::bit_ceil(std::min<size_t>(text_bytes / 16, 16384)));
  }

  /// Null if there is no cache.
  Slot* slot_of(std::string_view word) noexcept {
    return slots_.empty() ? nullptr : &slots_[hash(word) & (slots_.size() - 1)];
  }

  /// Appends the ids of `word` if the slot holds it.
  static bool copy(const Slot* slot, std::string_view word, std::vector<int32_t>* out) {
    if (slot == nullptr || slot->word != word) return false;
    const size_t size = out->size();
    out->resize(size + slot->count);
    std::copy_n(out->data() + slot->first, slot->count, out->data() + size);
    return true;
  }

  /// Notes that out[first, end) are the ids of `word`, which must live as long as the cache.
  static void store(Slot* slot, std::string_view word, size_t first,
                    const std::vector<int32_t>& out) noexcept {
    if (slot != nullptr) *slot = {word, first, out.size() - first};
  }

 private:
  static size_t hash(std::string_view word) noexcept {
    uint64_t state = word.size();
    while (!word.empty()) {
      uint64_t chunk = 0;
      const size_t taken = std::min<size_t>(word.size(), sizeof chunk);
      std::memcpy(&chunk, word.data(), taken);
      state = (state ^ chunk) * 0x9E3779B97F4A7C15ULL;
      state ^= state >> 29;
      word.remove_prefix(taken);
    }
    return static_cast<size_t>(state >> 7);
  }

  std::vector<Slot> slots_;
};

}  // namespace gen::tokenizer
