// SPDX-License-Identifier: Apache-2.0
// The memories that layers of a cache lie in, where a model's layers run on several engines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"

namespace gen::cache {

/// One for each layer, and at least one.
using LayerMemories = std::span<engine::EngineMemory* const>;

/// Layers by the memory that they lie in, in the order of each memory's first layer.
struct MemoryGroups {
  struct Group {
    engine::EngineMemory* memory = nullptr;
    std::vector<LayerShape> layers;
  };
  std::vector<Group> groups;
  std::vector<int32_t> group_of_layer;
};
MemoryGroups group_layers(std::span<const LayerShape> layers, LayerMemories memories);

using MakeInMemory = std::function<Result<std::unique_ptr<KvCache>>(
    std::span<const LayerShape> layers, engine::EngineMemory& memory)>;
/// What `make` makes of the layers of each memory, as one cache. Errors: those of `make` and of
/// make_split_cache.
Result<std::unique_ptr<KvCache>> make_in_memories(std::span<const LayerShape> layers,
                                                  LayerMemories memories, const MakeInMemory& make);

}  // namespace gen::cache
