// SPDX-License-Identifier: Apache-2.0
// A cache made for a state, where there is none yet to take it.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/state_file.h"

namespace gen::cache {

/// Makes an empty cache for such a state.
using MakeCache = std::function<Result<std::unique_ptr<KvCache>>(const SavedOutline& outline)>;

/// A cache of the layers and with the content that `from` tells; null for a state without
/// positions. kInvalidArgument for a state of another number of layers; what `make` and restore()
/// say.
Result<std::unique_ptr<KvCache>> restored_cache(StateReader& from, int32_t num_layers,
                                                const MakeCache& make);

/// Puts what one cache holds into another, which is empty and of the same layers, formats and
/// chunks.
Status copy_content(KvCache& from, KvCache& to);

}  // namespace gen::cache
