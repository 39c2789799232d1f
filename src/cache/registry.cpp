// SPDX-License-Identifier: Apache-2.0
// The cache kinds of this build. See registry.h.
#include "cache/registry.h"

#include <string>

#include "cache/contiguous_cache.h"

namespace gen::cache {
namespace {

constexpr CacheKind kKinds[] = {
    {"fp32", 32, false, ContiguousCache::create_fp32},
    {"fp16", 16, true, ContiguousCache::create_fp16},
};

}  // namespace

std::span<const CacheKind> cache_kinds() noexcept { return kKinds; }

const CacheKind* find_cache_kind(std::string_view name) noexcept {
  for (const CacheKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

Result<std::unique_ptr<KvCache>> make_cache(std::string_view kind,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            Allocator& allocator) {
  const CacheKind* row = find_cache_kind(kind);
  if (row == nullptr) {
    return error(Code::kInvalidArgument, "unknown cache kind %s",
                 std::string(kind.substr(0, 60)).c_str());
  }
  return row->create(layers, capacity, allocator);
}

}  // namespace gen::cache
