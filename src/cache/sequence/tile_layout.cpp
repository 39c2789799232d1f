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
    LayerPlace place;
    if (!layout.add_region(engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim, &place.k) ||
        !layout.add_region(engine::KvOrder::kValues, shape.kv_heads, shape.v_dim, &place.v)) {
      return error(Code::kOutOfMemory, "a block of %d entries of %zu layers overflows %zu bits",
                   block_size, layers.size(), 8 * sizeof(size_t));
    }
    const auto heads = static_cast<size_t>(shape.kv_heads);
    layout.bytes_per_entry_ += (heads * (place.k.tile_bytes + place.v.tile_bytes) +
                                place.k.shared_bytes + place.v.shared_bytes) /
                               engine::kKvTile;
    layout.places_.push_back(place);
  }
  return layout;
}

bool TileLayout::add_region(engine::KvOrder order, int32_t heads, int32_t dim, Region* region) {
  const engine::KvCodec& codec = engine::kv_codec(side_format(order));
  const auto n_heads = static_cast<size_t>(heads);
  const size_t tiles = tiles_of(block_size_);
  region->offset = block_bytes_;
  region->tile_bytes = codec.tile_bytes(order, static_cast<size_t>(dim));
  if (codec.shared_bytes != nullptr) {
    region->shared_bytes = codec.shared_bytes(n_heads, static_cast<size_t>(dim));
  }
  size_t shared = 0;
  return checked_mul(region->tile_bytes, tiles, &region->head_bytes) &&
         checked_mul(region->head_bytes, n_heads, &region->shared_offset) &&
         checked_mul(region->shared_bytes, tiles, &shared) &&
         checked_add(block_bytes_, region->shared_offset, &block_bytes_) &&
         checked_add(block_bytes_, shared, &block_bytes_) &&
         checked_align_up(block_bytes_, size_t{64}, &block_bytes_);
}

size_t TileLayout::table_bytes() const noexcept {
  return shapes_.size() * (sizeof(LayerShape) + sizeof(LayerPlace));
}

engine::KvSide TileLayout::side(const Region& region, engine::KvOrder order, int32_t dim,
                                std::byte* const* blocks) const noexcept {
  engine::KvSide side;
  side.format = side_format(order);
  side.order = order;
  side.blocks = blocks;
  side.block_offset = region.offset;
  side.block_size = block_size_;
  side.tile_stride = region.tile_bytes;
  side.head_stride = region.head_bytes;
  side.shared_offset = region.shared_offset;
  side.shared_stride = region.shared_bytes;
  side.head_dim = dim;
  return side;
}

engine::KvView TileLayout::view(int32_t layer, std::byte* const* blocks,
                                int32_t entries) const noexcept {
  GEN_ASSERT(layer >= 0 && static_cast<size_t>(layer) < shapes_.size());
  const LayerShape& shape = shapes_[static_cast<size_t>(layer)];
  const LayerPlace& place = places_[static_cast<size_t>(layer)];
  engine::KvView view;
  view.k = side(place.k, engine::KvOrder::kKeys, shape.k_dim, blocks);
  view.v = side(place.v, engine::KvOrder::kValues, shape.v_dim, blocks);
  view.kv_heads = shape.kv_heads;
  view.key_form = format_.key_form(shape.k_dim);
  view.entries = entries;
  view.window = shape.window;
  view.chunk = shape.chunk;
  return view;
}

}  // namespace gen::cache
