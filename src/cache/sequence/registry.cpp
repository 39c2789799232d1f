// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "cache/sequence/registry.h"

#include "cache/sequence/contiguous_cache.h"

namespace gen::cache {
Result<std::unique_ptr<KvCache>> make_cache(std::string_view format,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            engine::EngineMemory& memory) {
  GEN_ASSIGN(const CacheFormat parsed, parse_cache_format(format));
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  GEN_TRY(check_layers(parsed, layers));
  return create_contiguous_cache(parsed, layers, capacity, memory);
}

}  // namespace gen::cache
