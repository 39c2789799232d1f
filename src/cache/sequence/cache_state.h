// SPDX-License-Identifier: Apache-2.0
// Saving and restoring what attention reads, through plan, view and commit: each layer's entries as
// their format keeps them, in tiles of sixteen as if the cache were one block. So a state does not
// tell how a cache lays out its blocks, and goes into any cache of the same layers, formats and key
// forms.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/state_file.h"

namespace gen::cache {

/// What a layer's section says before the entries.
struct SavedLayer {
  LayerShape shape;  // without its table
  engine::KvFormat k = engine::KvFormat::kF32;
  engine::KvFormat v = engine::KvFormat::kF32;
  engine::KeyForm form = engine::KeyForm::kRotated;
  int32_t first = 0;  // entry in the state, a tile's first; a window has none before
};

/// Entries in a state, every number and size checked; the bytes lie where they were.
struct SavedEntries {
  int32_t entries = 0;
  std::vector<SavedLayer> layers;
  std::vector<std::span<const std::byte>> payloads;
};

/// Writes the committed entries of a cache that keeps one for each position; kUnsupported for
/// another.
Status save_entries(KvCache& cache, StateWriter& to);
/// Reads what save_entries wrote: kFormat for damage, kInvalidArgument for a state that is of
/// another kind of cache.
Result<SavedEntries> read_entries(StateReader& from);
/// kInvalidArgument naming what differs for other layers or formats than the empty cache has;
/// kCacheFull if it does not hold so many.
Status check_entries(const SavedEntries& saved, KvCache& cache);
/// Writes checked entries to the empty cache. What plan() says; the cache then is empty.
Status restore_entries(const SavedEntries& saved, KvCache& cache);

/// Before the entries of a compressed cache: i32 positions of a chunk, i32 positions held.
inline constexpr const char* kPoolSection = "POOL";

/// A compressed cache in a state: its entries, and the rows of the last closed chunk.
struct SavedChunks {
  int32_t chunk = 1;
  int32_t positions = 0;
  SavedEntries entries;
  SavedEntries kept;
};
/// Reads what is from kPoolSection on. Errors: kFormat.
Result<SavedChunks> read_chunks(StateReader& from);

struct SavedOutline {
  std::vector<LayerShape> layers;
  int32_t positions = 0;
  int32_t chunk = 0;     // of a compressed cache
  int32_t capacity = 0;  // the least of a cache that can take it
};

/// What a cache for a state must be like: a state that has bytes for what it says. Errors: kFormat.
Result<SavedOutline> saved_outline(StateReader from);

}  // namespace gen::cache
