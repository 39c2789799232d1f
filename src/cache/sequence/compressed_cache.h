// SPDX-License-Identifier: Apache-2.0
// One sequence of which only the current chunk of positions is kept as it is: when a chunk is full
// it becomes a single entry, the mean of its values and of its keys as they were before rotary
// embedding, turned to the chunk's mean position. Attention counts such an entry `chunk` times.
// What attention reads; the form for tensors of the C API is compressed_store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"

namespace gen::cache {

/// An empty float32 cache for `capacity` positions in chunks of `chunk`, both 1 and up. No plan
/// reaches over the end of a chunk (plan_limit), so results do not depend on how rows came.
/// truncate() is exact within the current chunk and the one before it, whose rows are kept; further
/// back it drops the chunk it cuts into, so length() may then be less than asked for. Layers with
/// rotary embedding need their rope_table. `memory` must outlive it. Errors: kInvalidArgument,
/// kOutOfMemory.
Result<std::unique_ptr<KvCache>> make_compressed_cache(std::span<const LayerShape> layers,
                                                       int32_t capacity, int32_t chunk,
                                                       engine::EngineMemory& memory);

}  // namespace gen::cache
