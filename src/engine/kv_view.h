// SPDX-License-Identifier: Apache-2.0
// What a cache shows of itself to an engine, in two halves: how a layer lies in a block, which
// never changes (KvLayer), and where a sequence lies, which a step says once (KvRows, in engine
// memory). An engine puts them together (KvView) when an operation begins: attention reads through
// that in place, rope_append writes. A new cache format is described in kv/codec.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/access.h"
#include "engine/engine_ptr.h"

namespace gen::engine {

enum class KvFormat : int32_t {
  kF32 = 0,
  kF16 = 1,
  kFp8 = 2,
  kQ4 = 3,
  kQ3 = 4,
};
constexpr int32_t kKvFormats = 5;

/// In which form keys are stored; rope_append and attention both follow it.
enum class KeyForm : int32_t {
  kRotated = 0,    // rotary embedding applied before storing
  kUnrotated = 1,  // stored as projected, rotated when read
  kHadamard = 2,   // rotated and Hadamard-turned; attention turns q instead
};

/// A head's entries lie in tiles of sixteen. Sixteen, since a lane is then an entry when keys meet
/// a query, and nothing is summed across lanes.
constexpr int32_t kKvTile = 16;

/// Attention goes through a sequence in chunks of positions [c * kKvChunk, (c + 1) * kKvChunk), and
/// what it reads of one should lie in one stretch. Fixed, because partial softmaxes are merged
/// chunk by chunk and the result must not depend on how rows came.
constexpr int32_t kKvChunk = 256;

/// How a tile is ordered: element d of entry i at [d][i] for keys, [i][d] for values; formats with
/// scales or packed codes follow it in their own way, kv/.
enum class KvOrder : int32_t {
  kKeys = 0,
  kValues = 1,
};

/// Where an entry lies: head 0's tile, and the place in it, in [0, kKvTile).
struct KvPlace {
  std::byte* tile;
  std::byte* shared;  // what heads share of the tile, null where formats share nothing
  int32_t lane;
};

/// How keys or values of a layer lie in a block, see KvSide.
struct KvSideForm {
  KvFormat format = KvFormat::kF32;
  KvOrder order = KvOrder::kKeys;
  int32_t head_dim = 0;
  size_t block_offset = 0;
  size_t tile_stride = 0;
  size_t head_stride = 0;
  size_t shared_offset = 0;
  size_t shared_stride = 0;
  friend bool operator==(const KvSideForm&, const KvSideForm&) = default;
};

/// A layer of every sequence of one kind of cache.
struct KvLayer {
  KvSideForm k;
  KvSideForm v;
  int32_t kv_heads = 0;
  int32_t block_size = 0;  // entries in a block
  int32_t window = 0;      // visible entries, the row itself included; 0 means all
  int32_t chunk = 0;       // positions p with p / chunk as the row's are visible; 0 means all
  int32_t part = 0;        // layers with one block table are a part of the cache
  KeyForm key_form = KeyForm::kRotated;
  friend bool operator==(const KvLayer&, const KvLayer&) = default;
};

/// Rows of one sequence in a step, and where a part of its cache lies; in engine memory, as is all
/// that it points at.
struct KvRows {
  int32_t first_row = 0;  // of the batch
  int32_t n_rows = 0;
  int32_t first_entry = 0;     // entry of the first row; the others follow
  int32_t entries = 0;         // committed entries and those of the step
  int32_t first_position = 0;  // of entry 0, where positions are implied
  int32_t first_cell = 0;      // the entry that cells[0] is of
  EnginePtr<const EnginePtr<std::byte>> blocks;
  EnginePtr<const int32_t> cells;      // null: entries follow one another
  EnginePtr<const int32_t> positions;  // [entries], or null: first_position + entry
  EnginePtr<const float> log_weights;  // [entries] added to scores, or null
  /// Trees: bit j of row i (word i * words + j / 64, words = ceil(n_rows / 64)) is set when row i
  /// may look at row j. Null: a row sees those before it.
  EnginePtr<const uint64_t> visible;
};
static_assert(sizeof(KvRows) == 64);

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
