// SPDX-License-Identifier: Apache-2.0
// Saving and restoring what attention reads, for every KvCache through plan, view and commit: each
// layer's entries as their format keeps them, in tiles of sixteen as if the cache were one block.
// So a state does not tell how a cache lays out its blocks, and goes into any cache of the same
// layers, formats and key forms.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "cache/state_file.h"

namespace gen::cache {

/// Writes the committed entries. kUnsupported for a cache that keeps fewer entries than positions.
Status save_cache(KvCache& cache, StateWriter& to);

/// Reads what save_cache wrote into an empty cache. Everything is checked before the cache is
/// touched: kFormat for damage, kInvalidArgument naming what differs for a state of other layers or
/// formats, kCacheFull if it does not fit. Also what plan() says; on any failure the cache is
/// empty.
Status restore_cache(StateReader& from, KvCache& cache);

struct SavedOutline {
  std::vector<LayerShape> layers;
  int32_t entries = 0;
};

/// What a cache for a state must be like. Errors: kFormat.
Result<SavedOutline> saved_outline(StateReader from);

}  // namespace gen::cache
