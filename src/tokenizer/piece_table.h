// SPDX-License-Identifier: Apache-2.0
// PieceTable: from a piece's text to its id, optimised for looking up two adjacent texts together:
// the hash of both is computed from their hashes. Used by sentencepiece_bpe.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::tokenizer {

/// Storage: open addressing, at most half full; the texts are not copied.
/// Threads: immutable once filled.
class PieceTable {
 public:
  /// Room for `count` of the texts [id], which must outlive the table; up to `max_bytes` bytes
  /// each.
  PieceTable(std::span<const std::string> texts, size_t count, size_t max_bytes);

  /// Call it once per text, at most `count` times.
  void add(size_t id) noexcept;

  [[nodiscard]] static uint64_t hash(std::string_view text) noexcept {
    uint64_t value = 0;
    for (const char c : text) value = value * kBase + static_cast<unsigned char>(c) + 1;
    return value;
  }
  /// Hash of two texts, the second of `right_bytes` bytes, together no longer than max_bytes().
  [[nodiscard]] uint64_t join(uint64_t left, uint64_t right, size_t right_bytes) const noexcept {
    return left * powers_[right_bytes] + right;
  }
  /// The id of `text`, which has that hash, or -1.
  [[nodiscard]] int32_t find(uint64_t hash, std::string_view text) const noexcept;

  [[nodiscard]] size_t max_bytes() const noexcept { return powers_.size() - 1; }

 private:
  static constexpr uint64_t kBase = 0x9E3779B97F4A7C15ULL;
  struct Slot {
    uint32_t tag;  // half of the mixed hash, the other half chooses the slot
    int32_t id;    // -1: empty
  };
  [[nodiscard]] static uint64_t mix(uint64_t hash) noexcept {
    hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93ULL;
    return hash ^ (hash >> 29);
  }

  std::span<const std::string> texts_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> powers_;  // [bytes] of kBase
};

}  // namespace gen::tokenizer
