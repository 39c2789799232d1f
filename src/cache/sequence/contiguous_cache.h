// SPDX-License-Identifier: Apache-2.0
// The plain cache: keys and values of every layer one entry after another, as float32 or binary16.
// See contiguous_cache.cpp for the layout.
#pragma once

#include <memory>
#include <span>

#include "cache/sequence/cache_format.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"

namespace gen::cache {

/// Arguments as checked by make_cache. kOutOfMemory names the size.
Result<std::unique_ptr<KvCache>> create_contiguous_cache(const CacheFormat& format,
                                                         std::span<const LayerShape> layers,
                                                         int32_t capacity,
                                                         engine::EngineMemory& memory);

}  // namespace gen::cache
