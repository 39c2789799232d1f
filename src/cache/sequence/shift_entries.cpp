// SPDX-License-Identifier: Apache-2.0
// See shift_entries.h.
#include "cache/sequence/shift_entries.h"

#include <algorithm>

namespace gen::cache {

bool can_shift_entries(const CacheFormat& format, std::span<const LayerShape> layers) noexcept {
  if (format.keys != engine::KvFormat::kF32 && format.keys != engine::KvFormat::kF16) return false;
  return std::all_of(layers.begin(), layers.end(), [&](const LayerShape& shape) {
    const bool turns = shape.rope != engine::RopeKind::kNone;
    return shape.chunk == 0 && format.key_form(shape.k_dim) == engine::KeyForm::kRotated &&
           (!turns || shape.rope_table != nullptr);
  });
}

std::vector<const engine::RopeTable*> turning_tables(std::span<const LayerShape> layers) {
  std::vector<const engine::RopeTable*> tables;
  tables.reserve(layers.size());
  for (const LayerShape& shape : layers) {
    tables.push_back(shape.rope != engine::RopeKind::kNone ? shape.rope_table : nullptr);
  }
  return tables;
}

}  // namespace gen::cache
