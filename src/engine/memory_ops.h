// SPDX-License-Identifier: Apache-2.0
// What is done to an engine's memory between steps: entries of caches are copied, moved and pooled
// where they lie. Unlike operations of a step (ops.h) these name lists in host memory, which are
// taken before EngineMemory::run returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "engine/engine_ptr.h"
#include "engine/kv_layer.h"
#include "engine/ops.h"

namespace gen::engine {

/// `bytes` bytes, which do not overlap.
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

/// Entries of layers that lie in the same blocks, a part of a cache: how they lie, and where.
struct KvEntries {
  std::span<const KvLayer> layers;
  KvTables tables;
};

/// `count` entries from entry `from` on become those from entry `to` on.
struct KvRun {
  int32_t from = 0;
  int32_t to = 0;
  int32_t count = 1;
};

enum class KvSides : uint8_t { kBoth, kKeys, kValues };

/// Keys and values of each layer as they are stored, run by run; a run does not overlap where it
/// goes. Both sides have the same layers, formats and heads, as far as `sides` goes.
struct KvCopyArgs {
  KvEntries from;
  KvEntries to;
  std::span<const KvRun> runs;
  KvSides sides = KvSides::kBoth;
};

/// The angles of layers' keys, in host memory: one for each, null where they are not to be turned.
using RopeTables = std::span<const RopeTable* const>;

/// Entries [first + n, end) become [first, end - n). Keys with a table, stored as float32 or
/// binary16, are turned back by n positions: decoded, turned in double precision, encoded again.
struct KvShiftArgs {
  KvEntries entries;
  RopeTables ropes;
  int32_t first = 0;
  int32_t n = 0;  // 1 and up
  int32_t end = 0;
};

/// Entry `to` becomes the mean of entries [first, first + n), of which it may be one. Keys with a
/// table are turned before, from where they stand to the middle: what they would be had they come
/// there. Sums are made in double precision, entry after entry.
struct KvPoolArgs {
  KvEntries entries;
  RopeTables ropes;
  int32_t first = 0;
  int32_t n = 0;  // 1 and up
  int32_t to = 0;
};

using MemoryOp = std::variant<CopyArgs, FillArgs, KvCopyArgs, KvShiftArgs, KvPoolArgs>;

}  // namespace gen::engine
