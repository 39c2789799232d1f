// SPDX-License-Identifier: Apache-2.0
// See shift_entries.h.
#include "cache/sequence/shift_entries.h"

#include <algorithm>
#include <limits>

#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

constexpr size_t kNoTurn = std::numeric_limits<size_t>::max();

}  // namespace

bool can_shift_entries(const CacheFormat& format, std::span<const LayerShape> layers) noexcept {
  if (format.keys != engine::KvFormat::kF32 && format.keys != engine::KvFormat::kF16) return false;
  return std::all_of(layers.begin(), layers.end(), [&](const LayerShape& shape) {
    const bool turns = shape.rope != engine::RopeKind::kNone;
    return shape.chunk == 0 && format.key_form(shape.k_dim) == engine::KeyForm::kRotated &&
           (!turns || shape.rope_table != nullptr);
  });
}

EntryShift::EntryShift(std::span<const LayerShape> layers, int32_t n) : n_(n) {
  std::vector<const engine::RopeTable*> tables;
  size_t widest = 0;
  size_t longest = 0;
  for (const LayerShape& shape : layers) {
    const auto dim = static_cast<size_t>(shape.k_dim);
    widest = std::max(widest, dim * static_cast<size_t>(shape.kv_heads));
    longest = std::max(longest, dim);
    if (shape.rope == engine::RopeKind::kNone) {
      turn_of_.push_back(kNoTurn);
      continue;
    }
    const auto at = std::find(tables.begin(), tables.end(), shape.rope_table);
    turn_of_.push_back(static_cast<size_t>(at - tables.begin()));
    if (at != tables.end()) continue;
    tables.push_back(shape.rope_table);
    turns_.emplace_back(*shape.rope_table, -static_cast<double>(n));
  }
  row_.resize(widest);
  head_.resize(longest);
}

void EntryShift::move(int32_t layer, const engine::KvView& view, int32_t first) noexcept {
  const int32_t heads = view.kv_heads;
  const auto dim = static_cast<size_t>(view.k.head_dim);
  const size_t turn = turn_of_[static_cast<size_t>(layer)];
  // Runs of n entries, which do not overlap where they go.
  for (int32_t from = first + n_; from < view.entries; from += n_) {
    const int32_t run = std::min(n_, view.entries - from);
    engine::kv_copy(view.v, from, view.v, from - n_, heads, run);
    if (turn == kNoTurn) engine::kv_copy(view.k, from, view.k, from - n_, heads, run);
  }
  if (turn == kNoTurn) return;
  for (int32_t entry = first + n_; entry < view.entries; ++entry) {
    for (int32_t head = 0; head < heads; ++head) {
      float* const key = row_.data() + static_cast<size_t>(head) * dim;
      engine::kv_get(view.k, entry, head, key);
      std::copy(key, key + dim, head_.begin());
      turns_[turn].apply(head_.data());
      std::transform(head_.begin(), head_.begin() + static_cast<std::ptrdiff_t>(dim), key,
                     [](double x) { return static_cast<float>(x); });
    }
    engine::kv_put(view.k, entry - n_, heads, row_.data());
  }
}

}  // namespace gen::cache
