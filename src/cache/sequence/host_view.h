// SPDX-License-Identifier: Apache-2.0
// Entries of caches in host memory, for what caches do with them outside of a step: copies, shifts,
// pooled means, saved states, reading back.
#pragma once

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/kv_view.h"

namespace gen::cache {

/// A layer of a sequence of `entries` entries. Valid as long as the tables.
engine::KvView host_view(const engine::KvLayer& layer, const CacheTables& tables,
                         int32_t entries) noexcept;

/// The layer including the planned entries, staged; valid until the cache changes or the next layer
/// is asked for. What KvCache::tables and stage say.
Result<engine::KvView> host_view(KvCache& cache, int32_t layer, const CachePlan& plan);

}  // namespace gen::cache
