// SPDX-License-Identifier: Apache-2.0
// See host_view.h.
#include "cache/sequence/host_view.h"

#include "engine/access.h"

namespace gen::cache {

engine::KvView host_view(const engine::KvLayer& layer, const CacheTables& tables,
                         int32_t entries) noexcept {
  engine::KvRows rows;
  rows.entries = entries;
  rows.first_cell = tables.first_cell;
  rows.blocks = engine::engine_ptr(tables.blocks.data());
  rows.cells = engine::engine_ptr(tables.cells.data());
  rows.positions = engine::engine_ptr(tables.positions.data());
  rows.log_weights = engine::engine_ptr(tables.log_weights.data());
  return engine::resolve(layer, rows, 0).view;
}

Result<engine::KvView> host_view(KvCache& cache, int32_t layer, const CachePlan& plan) {
  const engine::KvLayer& form = cache.kv_layers()[static_cast<size_t>(layer)];
  GEN_ASSIGN(const CacheTables tables, cache.tables(form.part, plan));
  GEN_TRY(cache.stage(layer, plan));
  return host_view(form, tables, plan.start + plan.count);
}

}  // namespace gen::cache
