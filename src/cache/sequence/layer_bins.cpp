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

/// The layers of one memory, and what is known of their sizes.
struct InMemory {
  std::vector<size_t> layers;          // indices
  std::vector<size_t> bytes;           // of their blocks
  std::map<int32_t, size_t> of_reach;  // sums
  size_t most = 0;
};

/// Fills bins of at most `size` bytes with layers of one memory. A reach's bins are those that it
/// has already, for other memories, and new ones.
void fill_bins(std::span<const LayerShape> shapes, const InMemory& memory, size_t size,
               LayerBins* made, size_t* largest) {
  struct Open {
    std::vector<int32_t> bins;  // of the reach, in order
    size_t at = 0;
    size_t filled = 0;
  };
  std::map<int32_t, Open> open;
  for (size_t bin = 0; bin < made->reaches.size(); ++bin) {
    open[made->reaches[bin]].bins.push_back(static_cast<int32_t>(bin));
  }
  *largest = 0;
  for (size_t i = 0; i < memory.layers.size(); ++i) {
    const int32_t reach = window_reach(shapes[memory.layers[i]]);
    Open& of = open[reach];
    if (of.filled > 0 && of.filled + memory.bytes[i] > size) {
      ++of.at;
      of.filled = 0;
    }
    if (of.at == of.bins.size()) {
      of.bins.push_back(static_cast<int32_t>(made->reaches.size()));
      made->reaches.push_back(reach);
    }
    of.filled += memory.bytes[i];
    *largest = std::max(*largest, of.filled);
    made->bin_of_layer[memory.layers[i]] = of.bins[of.at];
  }
}

}  // namespace

Result<LayerBins> bin_layers(const CacheFormat& format, std::span<const LayerShape> layers,
                             std::span<const int32_t> memory_of_layer, size_t memories,
                             int32_t block_size) {
  GEN_ASSERT(!layers.empty() && memory_of_layer.size() == layers.size());
  std::vector<InMemory> in(memories);
  std::vector<int32_t> reaches;
  for (size_t i = 0; i < layers.size(); ++i) {
    GEN_ASSIGN(const TileLayout alone, TileLayout::create(format, {&layers[i], 1}, block_size));
    InMemory& memory = in[static_cast<size_t>(memory_of_layer[i])];
    memory.layers.push_back(i);
    memory.bytes.push_back(alone.block_bytes());
    memory.of_reach[window_reach(layers[i])] += alone.block_bytes();
    memory.most = std::max(memory.most, alone.block_bytes());
    reaches.push_back(window_reach(layers[i]));
  }
  std::sort(reaches.begin(), reaches.end());
  reaches.erase(std::unique(reaches.begin(), reaches.end()), reaches.end());
  LayerBins best;
  double least = std::numeric_limits<double>::infinity();
  for (const int32_t reach : reaches) {
    for (size_t parts = 1; parts <= kMostDivisions; ++parts) {
      LayerBins bins;
      bins.bin_of_layer.resize(layers.size());
      double block = 0.0;
      for (InMemory& memory : in) {
        const size_t size = std::max(memory.most, (memory.of_reach[reach] + parts - 1) / parts);
        size_t largest = 0;
        fill_bins(layers, memory, size, &bins, &largest);
        block += static_cast<double>(largest);
      }
      const auto n = static_cast<double>(bins.reaches.size());
      const double cost = n * block * (1 + 0.02 * n);
      if (cost >= least || (bins.reaches.size() > kMostBins && !best.reaches.empty())) continue;
      least = cost;
      best = std::move(bins);
    }
  }
  return best;
}

}  // namespace gen::cache
