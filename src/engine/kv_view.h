// SPDX-License-Identifier: Apache-2.0
// A layer of a sequence (kv_layer.h) with pointers instead of addresses, for engines that work in
// host memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/access.h"
#include "engine/kv_layer.h"

namespace gen::engine {

/// The place of an entry: head 0's tile, and the lane in the tile, in [0, kKvTile).
struct KvPlace {
  std::byte* tile;
  std::byte* shared;  // data of the tile that all heads share, null in formats without such data
  int32_t lane;
};

/// Keys or values of one layer. Without a block table, tile t of head g is at base + t *
/// tile_stride + g * head_stride. With one, each block begins with a tile of its own, even if
/// block_size is not a multiple of kKvTile: entry e is entry e % block_size of the block at
/// blocks[e / block_size] + block_offset. The last tile is allocated in full; its unused lanes are
/// undefined. In a memory shared by many sequences, entry e is stored in cell
/// cells[e - first_cell]. Entries before first_cell have been evicted and are never visible.
struct KvSide {
  KvFormat format = KvFormat::kF32;
  KvOrder order = KvOrder::kKeys;
  std::byte* base = nullptr;
  const EnginePtr<std::byte>* blocks = nullptr;  // [ceil(entries / block_size)] or null
  const int32_t* cells = nullptr;                // [entries - first_cell] or null
  int32_t first_cell = 0;                        // the entry that cells[0] is of
  size_t block_offset = 0;   // bytes from a block's start to this side's first tile
  int32_t block_size = 0;    // entries in a block
  size_t tile_stride = 0;    // bytes from one tile to the next
  size_t head_stride = 0;    // bytes from one kv head to the next
  size_t shared_offset = 0;  // bytes from the first tile to its data that all heads share
  size_t shared_stride = 0;  // bytes from shared data of one tile to the next's; 0 for none
  int32_t head_dim = 0;      // elements of a head

  /// The entry's number in memory: its cell, or the entry itself without cells.
  [[nodiscard]] int64_t cell(int64_t entry) const noexcept {
    return cells != nullptr ? cells[entry - first_cell] : entry;
  }
  [[nodiscard]] KvPlace place(int64_t entry) const noexcept {
    entry = cell(entry);
    std::byte* first = base;
    if (blocks != nullptr) {
      first = Access::pointer(blocks[entry / block_size]) + block_offset;
      entry %= block_size;
    }
    const auto tile = static_cast<size_t>(entry / kKvTile);
    return {first + tile * tile_stride,
            shared_stride != 0 ? first + shared_offset + tile * shared_stride : nullptr,
            static_cast<int32_t>(entry % kKvTile)};
  }
};

/// A side with the layout of `form`, without pointers.
KvSide side_of(const KvSideForm& form) noexcept;

/// One layer of one sequence, for engines in host memory.
struct KvView {
  KvSide k;
  KvSide v;
  int32_t kv_heads = 0;
  int32_t entries = 0;         // committed entries plus those of the plan this view was made for
  int32_t first_position = 0;  // position of entry 0 where positions are implied
  int32_t window = 0;          // visible entries, the row itself included; 0 means all
  int32_t chunk = 0;           // positions p with p / chunk as the row's are visible; 0 means all
  KeyForm key_form = KeyForm::kRotated;
  const int32_t* positions = nullptr;  // [entries], or null: first_position + entry
  const float* log_weights = nullptr;  // [entries] added to scores, or null
};

/// KvRows of a layer as an engine in host memory works with them.
struct SequenceRows {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t first_entry = 0;
  KvView view;
  const uint64_t* visible = nullptr;
};

/// A pointer is an address plus `distance`, see EngineOptions.
SequenceRows resolve(const KvLayer& layer, const KvRows& rows, std::ptrdiff_t distance) noexcept;

}  // namespace gen::engine
