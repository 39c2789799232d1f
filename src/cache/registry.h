// SPDX-License-Identifier: Apache-2.0
// The table of cache kinds by name. A new kind is one file that implements KvCache and one row in
// registry.cpp; the conformance test walks the table.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/kv_cache.h"

namespace gen::cache {

struct CacheKind {
  const char* name;       // "fp32"
  double bits_per_value;  // stored, scales included, for four heads of 64
  bool lossy;             // stored values differ from those written
  engine::KvFormat format;
  /// Arguments are checked by make_cache.
  Result<std::unique_ptr<KvCache>> (*create)(const CacheKind& kind,
                                             std::span<const LayerShape> layers, int32_t capacity,
                                             Allocator& allocator);
};

/// All kinds, the default one first.
std::span<const CacheKind> cache_kinds() noexcept;
/// nullptr for an unknown name.
const CacheKind* find_cache_kind(std::string_view name) noexcept;
/// kInvalidArgument naming the known kinds.
Status check_cache_kind(std::string_view name);

/// kInvalidArgument for a shape without heads or elements, naming the layer.
Status check_layers(std::span<const LayerShape> layers);

/// An empty cache for `capacity` entries. `allocator` must outlive it. Errors: kInvalidArgument for
/// an unknown kind, a capacity below 1 or a shape without heads or elements; kOutOfMemory.
Result<std::unique_ptr<KvCache>> make_cache(std::string_view kind,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            Allocator& allocator);

/// An independent copy of kind, shapes, capacity and committed entries; a fork where blocks can be
/// shared. kOutOfMemory.
Result<std::unique_ptr<KvCache>> clone_cache(KvCache& source, Allocator& allocator);

}  // namespace gen::cache
