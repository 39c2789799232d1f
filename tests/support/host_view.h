// SPDX-License-Identifier: Apache-2.0
// Views of a cache's contents in place, for tests that write and read entries like operations.
#pragma once

#include "base/status.h"
#include "cache/prefix/block_pool.h"
#include "cache/sequence/kv_cache.h"
#include "engine/kv/codec.h"
#include "engine/kv/memory_ops_run.h"
#include "support/far_memory.h"

namespace gen::cache {

/// The layer including the planned entries, staged; valid until the cache changes or the next layer
/// is asked for. What KvCache::tables and stage say.
inline Result<engine::KvView> host_view(KvCache& cache, int32_t layer, const CachePlan& plan) {
  const engine::KvLayer& form = cache.kv_layers()[static_cast<size_t>(layer)];
  GEN_ASSIGN(const engine::KvTables tables, cache.tables(form.part, plan));
  GEN_TRY(cache.stage(layer, plan));
  const std::ptrdiff_t distance = test::distance_of(cache.engine_memory(form.part));
  return engine::view_entries(form, tables, plan.start + plan.count, distance);
}

/// A block of a pool in host memory.
inline std::byte* host_bytes(const Block& block) {
  return block.pool().memory().host(block.data());
}

}  // namespace gen::cache
