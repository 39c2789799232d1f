// SPDX-License-Identifier: Apache-2.0
// See layer_memories.h.
#include "cache/sequence/layer_memories.h"

#include <utility>

#include "cache/sequence/split_cache.h"

namespace gen::cache {

MemoryGroups group_layers(std::span<const LayerShape> layers, LayerMemories memories) {
  GEN_ASSERT(!memories.empty() && layers.size() <= memories.size());
  MemoryGroups made;
  for (size_t i = 0; i < layers.size(); ++i) {
    size_t group = 0;
    while (group < made.groups.size() && made.groups[group].memory != memories[i]) ++group;
    if (group == made.groups.size()) made.groups.push_back({memories[i], {}});
    made.groups[group].layers.push_back(layers[i]);
    made.group_of_layer.push_back(static_cast<int32_t>(group));
  }
  return made;
}

Result<std::unique_ptr<KvCache>> make_in_memories(std::span<const LayerShape> layers,
                                                  LayerMemories memories,
                                                  const MakeInMemory& make) {
  const MemoryGroups of = group_layers(layers, memories);
  if (of.groups.size() < 2) return make(layers, *memories[0]);
  std::vector<std::unique_ptr<KvCache>> caches;
  for (const MemoryGroups::Group& group : of.groups) {
    GEN_ASSIGN(auto made, make(group.layers, *group.memory));
    caches.push_back(std::move(made));
  }
  return make_split_cache(std::move(caches), of.group_of_layer);
}

}  // namespace gen::cache
