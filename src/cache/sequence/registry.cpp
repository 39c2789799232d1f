// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "cache/sequence/registry.h"

#include "cache/sequence/contiguous_cache.h"
#include "cache/sequence/host_view.h"
#include "engine/kv/codec.h"

namespace gen::cache {
Result<std::unique_ptr<KvCache>> make_cache(std::string_view format,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            Allocator& allocator) {
  GEN_ASSIGN(const CacheFormat parsed, parse_cache_format(format));
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  GEN_TRY(check_layers(parsed, layers));
  return create_contiguous_cache(parsed, layers, capacity, allocator);
}

Result<std::unique_ptr<KvCache>> clone_cache(KvCache& source, Allocator& allocator) {
  auto forked = source.fork();
  if (forked.ok() || forked.status().code() != Code::kUnsupported) return forked;
  GEN_ASSIGN(auto copy,
             make_cache(source.traits().kind, source.layers(), source.capacity(), allocator));
  GEN_ASSIGN(const CachePlan all, copy->plan(source.length()));
  GEN_ASSIGN(const CachePlan held, source.plan(0));
  for (size_t i = 0; i < source.layers().size(); ++i) {
    const auto layer = static_cast<int32_t>(i);
    GEN_ASSIGN(const engine::KvView from, host_view(source, layer, held));
    GEN_ASSIGN(const engine::KvView to, host_view(*copy, layer, all));
    engine::kv_copy(from.k, 0, to.k, 0, from.kv_heads, held.start);
    engine::kv_copy(from.v, 0, to.v, 0, from.kv_heads, held.start);
  }
  copy->commit(all);
  return copy;
}

}  // namespace gen::cache
