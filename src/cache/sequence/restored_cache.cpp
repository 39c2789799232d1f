// SPDX-License-Identifier: Apache-2.0
// See restored_cache.h.
#include "cache/sequence/restored_cache.h"

#include "cache/sequence/cache_state.h"

namespace gen::cache {

Result<std::unique_ptr<KvCache>> restored_cache(StateReader& from, int32_t num_layers,
                                                const MakeCache& make) {
  GEN_ASSIGN(const SavedOutline outline, saved_outline(from));
  if (outline.layers.size() != static_cast<size_t>(num_layers)) {
    return error(Code::kInvalidArgument, "a state of %zu layers for a cache of %d",
                 outline.layers.size(), num_layers);
  }
  if (outline.positions == 0) return std::unique_ptr<KvCache>();
  GEN_ASSIGN(std::unique_ptr<KvCache> made, make(outline.layers));
  GEN_TRY(made->restore(from));
  return made;
}

}  // namespace gen::cache
