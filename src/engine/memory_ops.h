// SPDX-License-Identifier: Apache-2.0
// Operations on an engine's memory between steps: cache entries are copied, moved and pooled in
// place. Unlike the operations of a step (ops.h) their lists are in host memory; they are copied
// before EngineMemory::run returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "engine/engine_ptr.h"
#include "engine/kv_layer.h"
#include "engine/ops.h"

namespace gen::engine {

/// Copies `bytes` bytes; source and target do not overlap.
struct CopyArgs {
  EnginePtr<std::byte> to;
  EnginePtr<const std::byte> from;
  size_t bytes = 0;
};

struct FillArgs {
  EnginePtr<std::byte> at;
  std::byte value{};
  size_t bytes = 0;
};

/// The layers of a cache that have one block table: their layouts and the table.
struct KvEntries {
  std::span<const KvLayer> layers;
  KvTables tables;
};

/// Entries [from, from + count) are copied to [to, to + count).
struct KvRun {
  int32_t from = 0;
  int32_t to = 0;
  int32_t count = 1;
};

enum class KvSides : uint8_t { kBoth, kKeys, kValues };

/// Copies keys and values of each layer in their stored form, run by run. Source and target of a
/// run do not overlap. Both caches have the same layers, formats and heads on the given `sides`.
struct KvCopyArgs {
  KvEntries from;
  KvEntries to;
  std::span<const KvRun> runs;
  KvSides sides = KvSides::kBoth;
};

/// The rotary tables of the layers, in host memory; null for layers whose keys are not rotated.
using RopeTables = std::span<const RopeTable* const>;

/// Moves entries [first + n, end) to [first, end - n). Keys with a table, stored as float32 or
/// binary16, are rotated back by `turn` positions: decoded, rotated in double precision, encoded
/// again. `turn` is n, unless the block table has moved the entries as well.
struct KvShiftArgs {
  KvEntries entries;
  RopeTables ropes;
  int32_t first = 0;
  int32_t n = 0;  // 0 and up
  int32_t end = 0;
  int32_t turn = 0;  // 1 and up
};

/// Entry `to` becomes the mean of entries [first, first + n), of which it may be one. Keys with a
/// table are first rotated from their own position to the middle one. Sums are made in double
/// precision, in the order of entries.
struct KvPoolArgs {
  KvEntries entries;
  RopeTables ropes;
  int32_t first = 0;
  int32_t n = 0;  // 1 and up
  int32_t to = 0;
};

using MemoryOp = std::variant<CopyArgs, FillArgs, KvCopyArgs, KvShiftArgs, KvPoolArgs>;

}  // namespace gen::engine
