// SPDX-License-Identifier: Apache-2.0
// Cache memory for tests, and its elements by the formula in the comments of engine/kv_view.h,
// written a second time.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/access.h"
#include "engine/kv/codec.h"
#include "tensor/half.h"

namespace gen::test {

inline std::byte* kv_element(const engine::KvSide& side, int64_t entry, int32_t head, int32_t d) {
  std::byte* first = side.base;
  int64_t within = entry;
  if (side.blocks != nullptr) {
    first = engine::Access::pointer(side.blocks[entry / side.block_size]) + side.block_offset;
    within = entry % side.block_size;
  }
  const int64_t tile = within / 16;
  const int64_t lane = within % 16;
  const int64_t bytes = side.format == engine::KvFormat::kF32 ? 4 : 2;
  const int64_t index =
      side.order == engine::KvOrder::kKeys ? d * int64_t{16} + lane : lane * side.head_dim + d;
  return first + tile * static_cast<int64_t>(side.tile_stride) +
         head * static_cast<int64_t>(side.head_stride) + index * bytes;
}

inline float kv_read(const engine::KvSide& side, int64_t entry, int32_t head, int32_t d) {
  const std::byte* at = kv_element(side, entry, head, d);
  if (side.format == engine::KvFormat::kF32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, at, sizeof(half));
  return f16_to_f32(half);
}

inline void kv_write(const engine::KvSide& side, int64_t entry, int32_t head, int32_t d,
                     float value) {
  std::byte* at = kv_element(side, entry, head, d);
  if (side.format == engine::KvFormat::kF32) {
    std::memcpy(at, &value, sizeof(value));
    return;
  }
  const uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof(half));
}

/// Memory of one side for `entries` entries: one piece, or blocks that lie in shuffled order. Every
/// gap that the layout allows is odd, and unused lanes hold what must not show.
class KvMemory {
 public:
  KvMemory(engine::KvFormat format, engine::KvOrder order, int32_t heads, int32_t dim,
           int32_t entries, int32_t block_size = 0, std::byte fill = std::byte{0x7F}) {
    const engine::KvCodec& codec = engine::kv_codec(format);
    const size_t element = 4;
    side.format = format;
    side.order = order;
    side.head_dim = dim;
    side.head_stride = codec.tile_bytes(order, static_cast<size_t>(dim)) + 3 * element;
    side.tile_stride = static_cast<size_t>(heads) * side.head_stride + 5 * element;
    side.block_size = block_size;
    side.block_offset = block_size > 0 ? 3 * element : 0;
    if (codec.shared_bytes != nullptr) {
      side.shared_stride =
          codec.shared_bytes(static_cast<size_t>(heads), static_cast<size_t>(dim)) + element;
    }
    const int32_t per_block = block_size > 0 ? block_size : entries;
    const int32_t n_blocks = (entries + per_block - 1) / per_block;
    const size_t tiles = static_cast<size_t>((per_block + 15) / 16);
    side.shared_offset = tiles * side.tile_stride;
    const size_t block_bytes = side.block_offset + tiles * (side.tile_stride + side.shared_stride);
    bytes.assign(static_cast<size_t>(n_blocks) * block_bytes + 4, fill);
    for (int32_t i = n_blocks - 1; i >= 0; --i) {
      blocks.push_back(engine::engine_ptr(bytes.data() + 4 + static_cast<size_t>(i) * block_bytes));
    }
    side.base = bytes.data() + 4;
    if (block_size > 0) side.blocks = blocks.data();
  }

  std::vector<std::byte> bytes;
  std::vector<engine::EnginePtr<std::byte>> blocks;
  engine::KvSide side;
};

}  // namespace gen::test
