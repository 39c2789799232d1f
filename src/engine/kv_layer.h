// SPDX-License-Identifier: Apache-2.0
// How engines see a KV cache. KvLayer is the constant layout of a layer within a block. KvRows, in
// engine memory, says once a step where the entries of a sequence are. An engine combines the two
// into a view (kv_view.h) when an operation begins: attention reads in place through the view,
// rope_append writes. kv/codec.h says how to add a cache format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

/// The form in which keys are stored, for rope_append and attention. The values are part of the
/// format of saved states, where 1 is reserved for keys that are rotated when read; no engine
/// supports those.
enum class KeyForm : int32_t {
  kRotated = 0,   // rotary embedding applied before storing
  kHadamard = 2,  // rotated and Hadamard-turned; attention turns q instead
};

/// Entries of a head are stored in tiles of sixteen. In the dot products of keys and a query each
/// of the sixteen SIMD lanes is then an entry, and nothing is summed across lanes.
constexpr int32_t kKvTile = 16;

/// Attention processes a sequence in chunks of positions [c * kKvChunk, (c + 1) * kKvChunk), and
/// the entries of a chunk should be contiguous. The size is fixed because partial softmaxes are
/// merged chunk by chunk, and the result must not depend on how rows were batched.
constexpr int32_t kKvChunk = 256;

/// The element order of a tile: element d of entry i is at [d][i] for keys, at [i][d] for values.
/// Formats with scales or packed codes adapt it, see the files in kv/.
enum class KvOrder : int32_t {
  kKeys = 0,
  kValues = 1,
};

/// The layout of a layer's keys or values in a block, see KvSide.
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

/// The layout of a layer, the same for all sequences of one kind of cache.
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

/// Where the entries of the layers with one block table are: lists in host memory of addresses in
/// engine memory.
struct KvTables {
  std::span<const EnginePtr<std::byte>> blocks;
  std::span<const int32_t> cells = {};      // see KvRows
  int32_t first_cell = 0;                   // the entry that cells[0] is of
  std::span<const int32_t> positions = {};  // of each entry; empty: entry e is at position e
  std::span<const float> log_weights = {};  // of each entry; empty: none
};

/// The rows of one sequence in a step, and the block table of one group of its layers. The struct
/// and all that it points to are in engine memory.
struct KvRows {
  int32_t first_row = 0;  // of the batch
  int32_t n_rows = 0;
  int32_t first_entry = 0;     // entry of the first row; the others follow
  int32_t entries = 0;         // committed entries plus those of the step
  int32_t first_position = 0;  // of entry 0, where positions are implied
  int32_t first_cell = 0;      // the entry that cells[0] is of
  EnginePtr<const EnginePtr<std::byte>> blocks;
  EnginePtr<const int32_t> cells;      // null: entries follow one another
  EnginePtr<const int32_t> positions;  // [entries], or null: first_position + entry
  EnginePtr<const float> log_weights;  // [entries] added to scores, or null
  /// The attention mask of draft trees: bit j of row i (word i * words + j / 64, with words =
  /// ceil(n_rows / 64)) is set if row i attends to row j. Null: causal.
  EnginePtr<const uint64_t> visible;
};
static_assert(sizeof(KvRows) == 64);

}  // namespace gen::engine
