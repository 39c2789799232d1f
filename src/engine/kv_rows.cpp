// SPDX-License-Identifier: Apache-2.0
// See kv_rows.h.
#include "engine/kv_rows.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "tensor/half.h"

namespace gen::engine {
namespace {

/// A head of an entry as elements `step` apart.
struct Elements {
  std::byte* first;
  size_t step;  // bytes
};

Elements elements(const KvSide& side, int64_t entry, int32_t head) noexcept {
  const KvPlace place = side.place(entry);
  const size_t bytes = kv_element_bytes(side.format);
  std::byte* piece = place.tile + static_cast<size_t>(head) * side.head_stride;
  const auto lane = static_cast<size_t>(place.lane);
  if (side.order == KvOrder::kKeys) return {piece + lane * bytes, kKvTile * bytes};
  return {piece + lane * static_cast<size_t>(side.head_dim) * bytes, bytes};
}

}  // namespace

size_t kv_element_bytes(KvFormat format) noexcept {
  return format == KvFormat::kF32 ? sizeof(float) : sizeof(uint16_t);
}

bool kv_tile_bytes(KvFormat format, int32_t head_dim, size_t* bytes) noexcept {
  return checked_mul(kKvTile * kv_element_bytes(format), static_cast<size_t>(head_dim), bytes);
}

void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept {
  const Elements from = elements(side, entry, head);
  for (size_t d = 0; d < static_cast<size_t>(side.head_dim); ++d) {
    const std::byte* at = from.first + d * from.step;
    if (side.format == KvFormat::kF32) {
      std::memcpy(out + d, at, sizeof(float));
    } else {
      uint16_t half = 0;
      std::memcpy(&half, at, sizeof(half));
      out[d] = f16_to_f32(half);
    }
  }
}

void kv_copy(const KvSide& from, const KvSide& to, int32_t heads, int64_t entries) noexcept {
  size_t bytes = 0;
  if (!kv_tile_bytes(from.format, from.head_dim, &bytes)) return;
  for (int64_t e = 0; e < entries;) {
    const std::byte* source = from.place(e).tile;
    std::byte* target = to.place(e).tile;
    for (size_t head = 0; head < static_cast<size_t>(heads); ++head) {
      std::memcpy(target + head * to.head_stride, source + head * from.head_stride, bytes);
    }
    int64_t step = kKvTile;
    if (from.blocks != nullptr)
      step = std::min<int64_t>(step, from.block_size - e % from.block_size);
    e += step;
  }
}

}  // namespace gen::engine
