// SPDX-License-Identifier: Apache-2.0
// A layer of a sequence (kv_layer.h) with pointers in the place of addresses, for engines whose
// memory is the host's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/access.h"
#include "engine/kv_layer.h"

namespace gen::engine {

/// Where an entry lies: head 0's tile, and the place in it, in [0, kKvTile).
struct KvPlace {
  std::byte* tile;
  std::byte* shared;  // what heads share of the tile, null where formats share nothing
  int32_t lane;
};

/// Keys or values of one layer. Tile t of head g lies at base + t * tile_stride + g * head_stride
/// without a block table. With one, each block begins a tile of its own, even where block_size is
/// not a multiple of kKvTile: entry e is entry e % block_size of the block blocks[e / block_size] +
/// block_offset. The last tile is there in full, whatever its unused lanes hold. Where many
/// sequences share one memory, entry e lies where entry cells[e - first_cell] would lie without a
/// list of cells; entries before first_cell are no longer there, and no rule of the view shows
/// them.
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
  size_t shared_offset = 0;  // bytes from the first tile to what heads share of it
  size_t shared_stride = 0;  // and from there to what they share of the next; 0 for none
  int32_t head_dim = 0;      // elements of a head

  /// What the entry's number is in memory: its cell, or itself.
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

/// A side that lies as `form` says, without its places.
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

/// Bytes lie `distance` from their addresses, see EngineOptions.
SequenceRows resolve(const KvLayer& layer, const KvRows& rows, std::ptrdiff_t distance) noexcept;

}  // namespace gen::engine
