// SPDX-License-Identifier: Apache-2.0
// One sequence whose layers lie in several caches, each in a memory of its own: for plans with
// layers on several engines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"

namespace gen::cache {

/// Of empty caches of one kind and capacity; layer i is the next one of caches[cache_of_layer[i]].
/// It shares no blocks, since that could succeed in one cache and fail in another, and shifts if
/// all its caches do. kInvalidArgument for layers that are not those of the caches, and for none;
/// kUnsupported for caches of means, since each may cut elsewhere.
Result<std::unique_ptr<KvCache>> make_split_cache(std::vector<std::unique_ptr<KvCache>> caches,
                                                  std::span<const int32_t> cache_of_layer);

}  // namespace gen::cache
