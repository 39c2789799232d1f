// SPDX-License-Identifier: Apache-2.0
// See layer_bins.h.
#include "cache/sequence/layer_bins.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cache/sequence/tile_layout.h"
#include "cache/sequence/window_cache.h"

namespace gen::cache {
namespace {

/// How often the layers of one reach are divided to find a size.
constexpr size_t kMostDivisions = 4;
constexpr size_t kMostBins = 64;

/// Fills bins of at most `size` bytes, one reach after the other, those that see all first.
LayerBins fill_bins(std::span<const LayerShape> layers, std::span<const size_t> bytes, size_t size,
                    size_t* largest) {
  LayerBins made;
  made.bin_of_layer.resize(layers.size());
  std::map<int32_t, std::pair<int32_t, size_t>> open;  // by reach: bin and bytes
  *largest = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const int32_t reach = window_reach(layers[i]);
    auto [at, fresh] = open.try_emplace(reach, 0, 0);
    auto& [bin, filled] = at->second;
    if (fresh || filled + bytes[i] > size) {
      bin = static_cast<int32_t>(made.reaches.size());
      filled = 0;
      made.reaches.push_back(reach);
    }
    filled += bytes[i];
    *largest = std::max(*largest, filled);
    made.bin_of_layer[i] = bin;
  }
  return made;
}

}  // namespace

Result<LayerBins> bin_layers(const CacheFormat& format, std::span<const LayerShape> layers,
                             int32_t block_size) {
  GEN_ASSERT(!layers.empty());
  std::vector<size_t> bytes;
  std::map<int32_t, size_t> of_reach;
  size_t most = 0;
  for (const LayerShape& layer : layers) {
    GEN_ASSIGN(const TileLayout alone, TileLayout::create(format, {&layer, 1}, block_size));
    bytes.push_back(alone.block_bytes());
    of_reach[window_reach(layer)] += alone.block_bytes();
    most = std::max(most, alone.block_bytes());
  }
  LayerBins best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [reach, sum] : of_reach) {
    for (size_t parts = 1; parts <= kMostDivisions; ++parts) {
      const size_t size = std::max(most, (sum + parts - 1) / parts);
      size_t largest = 0;
      LayerBins bins = fill_bins(layers, bytes, size, &largest);
      const auto n = static_cast<double>(bins.reaches.size());
      const double cost = n * static_cast<double>(largest) * (1 + 0.02 * n);
      if (cost >= least || (bins.reaches.size() > kMostBins && !best.reaches.empty())) continue;
      least = cost;
      best = std::move(bins);
    }
  }
  return best;
}

}  // namespace gen::cache
