// SPDX-License-Identifier: Apache-2.0
// PieceTable, see piece_table.h.
#include "tokenizer/piece_table.h"

#include <algorithm>
#include <bit>

namespace gen::tokenizer {

PieceTable::PieceTable(std::span<const std::string> texts, size_t count, size_t max_bytes)
    : texts_(texts), slots_(std::bit_ceil(std::max<size_t>(2 * count, 2)), Slot{0, -1}) {
  powers_.reserve(max_bytes + 1);
  powers_.push_back(1);
  while (powers_.size() <= max_bytes) powers_.push_back(powers_.back() * kBase);
}

void PieceTable::add(size_t id) noexcept {
  const uint64_t mixed = mix(hash(texts_[id]));
  size_t slot = static_cast<size_t>(mixed >> 32) & (slots_.size() - 1);
  while (slots_[slot].id >= 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = {static_cast<uint32_t>(mixed), static_cast<int32_t>(id)};
}

int32_t PieceTable::find(uint64_t hash, std::string_view text) const noexcept {
  const uint64_t mixed = mix(hash);
  const auto tag = static_cast<uint32_t>(mixed);
  size_t slot = static_cast<size_t>(mixed >> 32) & (slots_.size() - 1);
  for (; slots_[slot].id >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const int32_t id = slots_[slot].id;
    if (slots_[slot].tag == tag && texts_[static_cast<size_t>(id)] == text) return id;
  }
  return -1;
}

}  // namespace gen::tokenizer
