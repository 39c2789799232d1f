// SPDX-License-Identifier: Apache-2.0
// See restored_cache.h.
#include "cache/sequence/restored_cache.h"

#include <cstddef>
#include <vector>

namespace gen::cache {

Result<std::unique_ptr<KvCache>> restored_cache(StateReader& from, int32_t num_layers,
                                                const MakeCache& make) {
  GEN_ASSIGN(const SavedOutline outline, saved_outline(from));
  if (outline.layers.size() != static_cast<size_t>(num_layers)) {
    return error(Code::kInvalidArgument, "a state of %zu layers for a cache of %d",
                 outline.layers.size(), num_layers);
  }
  if (outline.positions == 0) return std::unique_ptr<KvCache>();
  GEN_ASSIGN(std::unique_ptr<KvCache> made, make(outline));
  GEN_TRY(made->restore(from));
  return made;
}

Status copy_content(KvCache& from, KvCache& to) {
  const auto contents = [&from](StateWriter& out) { return from.save(out); };
  GEN_ASSIGN(const size_t bytes, state_size(contents));
  std::vector<std::byte> state(bytes);
  GEN_TRY(save_state(StateKind::kModelCache, contents, state));
  GEN_ASSIGN(StateReader reader, StateReader::open(state));
  return to.restore(reader);
}

}  // namespace gen::cache
