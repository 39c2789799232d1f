// SPDX-License-Identifier: Apache-2.0
// The table of cache kinds by name. A new kind is one row in registry.cpp and passes the
// conformance test.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/kv_cache.h"

namespace gen::cache {

struct CacheKind {
  const char* name;       // "fp32"
  double bits_per_value;  // stored bits for each key or value element
  bool lossy;             // stored values differ from those written
  /// An empty cache of `capacity` entries. `allocator` outlives it. kInvalidArgument for shapes or
  /// a capacity that make no sense, kOutOfMemory.
  Result<std::unique_ptr<KvCache>> (*create)(std::span<const LayerShape> layers, int32_t capacity,
                                             Allocator& allocator);
};

std::span<const CacheKind> cache_kinds() noexcept;
/// nullptr for an unknown name.
const CacheKind* find_cache_kind(std::string_view name) noexcept;
/// kInvalidArgument naming an unknown kind, else as CacheKind::create.
Result<std::unique_ptr<KvCache>> make_cache(std::string_view kind,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            Allocator& allocator);

}  // namespace gen::cache
