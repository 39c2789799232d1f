// SPDX-License-Identifier: Apache-2.0
// What a cache shows of itself to an engine, in two halves: how a layer lies in a block, which
// never changes (KvLayer), and where a sequence lies, which a step says once (KvRows, in engine
// memory). An engine puts them together (kv_view.h) when an operation begins: attention reads
// through that in place, rope_append writes. A new cache format is described in kv/codec.h.
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

/// In which form keys are stored; rope_append and attention both follow it. Saved states have the
/// numbers, of which 1 is for keys that are rotated when read: no engine has those.
enum class KeyForm : int32_t {
  kRotated = 0,   // rotary embedding applied before storing
  kHadamard = 2,  // rotated and Hadamard-turned; attention turns q instead
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

/// Where entries of layers of one part lie: lists in host memory of addresses in the engine's.
struct KvTables {
  std::span<const EnginePtr<std::byte>> blocks;
  std::span<const int32_t> cells = {};      // see KvRows
  int32_t first_cell = 0;                   // the entry that cells[0] is of
  std::span<const int32_t> positions = {};  // of each entry; empty: entry e is at position e
  std::span<const float> log_weights = {};  // of each entry; empty: none
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

}  // namespace gen::engine
