// SPDX-License-Identifier: Apache-2.0
// Caches made by name. The conformance test walks all formats.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"

namespace gen::cache {

/// An empty cache for `capacity` entries, `format` as in cache_format.h. `memory` must outlive
/// it. Errors: kInvalidArgument for an unknown format, a capacity below 1 or a shape that
/// check_layers refuses; kOutOfMemory.
Result<std::unique_ptr<KvCache>> make_cache(std::string_view format,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            engine::EngineMemory& memory);

}  // namespace gen::cache
