// SPDX-License-Identifier: Apache-2.0
// How a block of positions lies in memory when an engine writes it: all layers, each layer's keys,
// then its values, head by head, so that memory is touched from its start on as a sequence grows,
// and what attention reads at once, a head's tiles of sixteen positions (engine/kv_layer.h), is one
// stretch for the processor's prefetching.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "cache/sequence/cache_format.h"
#include "engine/kv_layer.h"

namespace gen::cache {

/// Immutable after create().
class TileLayout {
 public:
  /// Blocks of `block_size` positions, the last tile of a block there in full. Shapes are checked
  /// by make_cache. kOutOfMemory if a block overflows a size.
  static Result<TileLayout> create(const CacheFormat& format, std::span<const LayerShape> layers,
                                   int32_t block_size);

  [[nodiscard]] std::span<const LayerShape> layers() const noexcept { return shapes_; }
  [[nodiscard]] const CacheFormat& format() const noexcept { return format_; }
  [[nodiscard]] int32_t block_size() const noexcept { return block_size_; }
  [[nodiscard]] size_t block_bytes() const noexcept { return block_bytes_; }
  /// Of a position in a full tile, over all layers.
  [[nodiscard]] size_t bytes_per_entry() const noexcept { return bytes_per_entry_; }
  /// Bytes of the tables in here.
  [[nodiscard]] size_t table_bytes() const noexcept;

  /// How each layer lies in a block; all are one part.
  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept { return kv_layers_; }

 private:
  [[nodiscard]] engine::KvFormat side_format(engine::KvOrder order) const noexcept {
    return order == engine::KvOrder::kKeys ? format_.keys : format_.values;
  }
  [[nodiscard]] bool add_region(engine::KvOrder order, int32_t heads, int32_t dim,
                                engine::KvSideForm* form);

  CacheFormat format_;
  int32_t block_size_ = 0;
  size_t block_bytes_ = 0;
  size_t bytes_per_entry_ = 0;
  std::vector<LayerShape> shapes_;
  std::vector<engine::KvLayer> kv_layers_;
};

}  // namespace gen::cache
