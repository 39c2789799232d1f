// SPDX-License-Identifier: Apache-2.0
// See staged_entries.h.
#include "cache/sequence/staged_entries.h"

#include <algorithm>

#include "engine/kv/codec.h"

namespace gen::cache {

using engine::KvOrder;

TileRows tile_rows(engine::KvFormat format, KvOrder order, int32_t heads,
                   int32_t head_dim) noexcept {
  const engine::KvCodec& codec = engine::kv_codec(format);
  const auto dim = static_cast<size_t>(head_dim);
  const auto n_heads = static_cast<size_t>(heads);
  TileRows rows;
  rows.form.format = format;
  rows.form.order = order;
  rows.form.head_dim = head_dim;
  rows.form.head_stride = codec.tile_bytes(order, dim);
  rows.form.shared_offset = n_heads * rows.form.head_stride;
  const size_t shared = codec.shared_bytes != nullptr ? codec.shared_bytes(n_heads, dim) : 0;
  rows.row_bytes = rows.form.shared_offset + shared;
  rows.form.tile_stride = rows.row_bytes;
  if (shared > 0) rows.form.shared_stride = rows.row_bytes;
  return rows;
}

Result<StagedSide> StagedSide::create(KvCache& cache, int32_t layer, const CachePlan& plan,
                                      KvOrder order) {
  StagedSide side;
  side.layer_ = &cache.kv_layers()[static_cast<size_t>(layer)];
  side.memory_ = &cache.engine_memory(side.layer_->part);
  side.order_ = order;
  GEN_ASSIGN(side.tables_, cache.tables(side.layer_->part, plan));
  GEN_TRY(cache.stage(layer, plan));
  const engine::KvSideForm& own = order == KvOrder::kKeys ? side.layer_->k : side.layer_->v;
  side.rows_ = tile_rows(own.format, order, side.layer_->kv_heads, own.head_dim);
  const size_t most = tile_count(std::min(plan.start + plan.count, kMost)) * side.rows_.row_bytes;
  GEN_ASSIGN(side.staging_, side.memory_->allocate(most));
  side.bytes_.resize(most);
  return side;
}

Status StagedSide::copy(int32_t first, int32_t staged, int32_t n, Way way) const {
  // The other side of this layout is never read.
  engine::KvLayer form = *layer_;
  form.block_size = kMost;
  (order_ == KvOrder::kKeys ? form.k : form.v) = rows_.form;
  const engine::EnginePtr<std::byte> block = staging_.data();
  const engine::KvEntries own{{layer_, 1}, tables_};
  const engine::KvEntries tiles{{&form, 1}, {{&block, 1}}};
  const auto sides = order_ == KvOrder::kKeys ? engine::KvSides::kKeys : engine::KvSides::kValues;
  if (way == Way::kOut) {
    const engine::KvRun run{first, staged, n};
    return memory_->run(engine::KvCopyArgs{own, tiles, {&run, 1}, sides});
  }
  const engine::KvRun run{staged, first, n};
  return memory_->run(engine::KvCopyArgs{tiles, own, {&run, 1}, sides});
}

Result<std::span<const std::byte>> StagedSide::read(int32_t first, int32_t n) {
  const size_t bytes = tile_count(n) * rows_.row_bytes;
  GEN_ASSERT(n <= kMost && bytes <= bytes_.size());
  if (n % engine::kKvTile != 0) {
    GEN_TRY(memory_->fill(staging_.data(), std::byte{0}, bytes));
  }
  GEN_TRY(copy(first, 0, n, Way::kOut));
  GEN_TRY(memory_->read(bytes_.data(), staging_.data(), bytes));
  return std::span<const std::byte>(bytes_).first(bytes);
}

Status StagedSide::write(std::span<const std::byte> bytes, int32_t skip, int32_t first, int32_t n) {
  GEN_ASSERT(skip + n <= kMost && bytes.size() == tile_count(skip + n) * rows_.row_bytes &&
             bytes.size() <= staging_.size());
  GEN_TRY(memory_->write(staging_.data(), bytes.data(), bytes.size()));
  return copy(first, skip, n, Way::kIn);
}

Status decode_entries(KvCache& cache, int32_t layer, const CachePlan& plan, KvOrder order,
                      float* out) {
  GEN_ASSIGN(StagedSide side, StagedSide::create(cache, layer, plan, order));
  const auto dim = static_cast<int64_t>(side.rows().form.head_dim);
  const bool turned =
      order == KvOrder::kKeys &&
      cache.kv_layers()[static_cast<size_t>(layer)].key_form == engine::KeyForm::kHadamard;
  const int32_t held = std::min(cache.first_held(layer), plan.start);
  for (int32_t head = 0; head < side.heads(); ++head) {
    std::fill_n(out + int64_t{head} * plan.start * dim, int64_t{held} * dim, 0.0F);
  }
  for (int32_t first = held; first < plan.start; first += StagedSide::kMost) {
    const int32_t n = std::min(plan.start - first, StagedSide::kMost);
    GEN_ASSIGN(const auto bytes, side.read(first, n));
    const engine::KvSide rows = engine::host_side(side.rows().form, bytes.data());
    for (int32_t head = 0; head < side.heads(); ++head) {
      for (int32_t e = 0; e < n; ++e) {
        float* const row = out + (int64_t{head} * plan.start + first + e) * dim;
        engine::kv_get(rows, e, head, row);
        if (turned) engine::kv_hadamard(row, static_cast<int32_t>(dim));
      }
    }
  }
  return {};
}

}  // namespace gen::cache
