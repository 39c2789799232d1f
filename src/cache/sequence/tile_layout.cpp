// SPDX-License-Identifier: Apache-2.0
// See tile_layout.h.
#include "cache/sequence/tile_layout.h"

#include "base/checked.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

size_t tiles_of(int32_t entries) {
  return (static_cast<size_t>(entries) + engine::kKvTile - 1) / engine::kKvTile;
}

}  // namespace

Result<TileLayout> TileLayout::create(const CacheFormat& format, std::span<const LayerShape> layers,
                                      int32_t block_size) {
  TileLayout layout;
  layout.format_ = format;
  layout.block_size_ = block_size;
  layout.shapes_.assign(layers.begin(), layers.end());
  for (const LayerShape& shape : layers) {
    engine::KvLayer layer;
    if (!layout.add_region(engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim, &layer.k) ||
        !layout.add_region(engine::KvOrder::kValues, shape.kv_heads, shape.v_dim, &layer.v)) {
      return error(Code::kOutOfMemory, "a block of %d entries of %zu layers overflows %zu bits",
                   block_size, layers.size(), 8 * sizeof(size_t));
    }
    layer.kv_heads = shape.kv_heads;
    layer.block_size = block_size;
    layer.window = shape.window;
    layer.chunk = shape.chunk;
    layer.key_form = format.key_form(shape.k_dim);
    const auto heads = static_cast<size_t>(shape.kv_heads);
    layout.bytes_per_entry_ += (heads * (layer.k.tile_stride + layer.v.tile_stride) +
                                layer.k.shared_stride + layer.v.shared_stride) /
                               engine::kKvTile;
    layout.kv_layers_.push_back(layer);
  }
  return layout;
}

bool TileLayout::add_region(engine::KvOrder order, int32_t heads, int32_t dim,
                            engine::KvSideForm* form) {
  form->format = side_format(order);
  form->order = order;
  form->head_dim = dim;
  const engine::KvCodec& codec = engine::kv_codec(form->format);
  const auto n_heads = static_cast<size_t>(heads);
  const size_t tiles = tiles_of(block_size_);
  form->block_offset = block_bytes_;
  form->tile_stride = codec.tile_bytes(order, static_cast<size_t>(dim));
  if (codec.shared_bytes != nullptr) {
    form->shared_stride = codec.shared_bytes(n_heads, static_cast<size_t>(dim));
  }
  size_t shared = 0;
  return checked_mul(form->tile_stride, tiles, &form->head_stride) &&
         checked_mul(form->head_stride, n_heads, &form->shared_offset) &&
         checked_mul(form->shared_stride, tiles, &shared) &&
         checked_add(block_bytes_, form->shared_offset, &block_bytes_) &&
         checked_add(block_bytes_, shared, &block_bytes_) &&
         checked_align_up(block_bytes_, size_t{64}, &block_bytes_);
}

size_t TileLayout::table_bytes() const noexcept {
  return shapes_.size() * (sizeof(LayerShape) + sizeof(engine::KvLayer));
}

}  // namespace gen::cache
