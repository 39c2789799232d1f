// SPDX-License-Identifier: Apache-2.0
// Layers in bins, for pools of equal blocks: each bin has layers that see the same, so that its
// blocks can be given back at one time, and all have about the same size in each memory, so that
// one kind of block serves them all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "cache/sequence/cache_format.h"

namespace gen::cache {

struct LayerBins {
  std::vector<int32_t> bin_of_layer;
  std::vector<int32_t> reaches;  // of each bin: window_reach() of its layers
};

/// Chooses the sizes that waste the fewest bytes of blocks of `block_size` positions; a further bin
/// counts as 2 % of all. Layers stay in order within what sees the same in one memory; memories of
/// layers are numbered from 0, below `memories`. At least one layer. kOutOfMemory.
Result<LayerBins> bin_layers(const CacheFormat& format, std::span<const LayerShape> layers,
                             std::span<const int32_t> memory_of_layer, size_t memories,
                             int32_t block_size);

}  // namespace gen::cache
