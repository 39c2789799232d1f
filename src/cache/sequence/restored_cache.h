// SPDX-License-Identifier: Apache-2.0
// A cache made for a state, where there is none yet to take it.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/state_file.h"

namespace gen::cache {

/// Makes an empty cache of these layers.
using MakeCache =
    std::function<Result<std::unique_ptr<KvCache>>(std::span<const LayerShape> layers)>;

/// A cache of the layers and with the content that `from` tells; null for a state without
/// positions. kInvalidArgument for a state of another number of layers; what `make` and restore()
/// say.
Result<std::unique_ptr<KvCache>> restored_cache(StateReader& from, int32_t num_layers,
                                                const MakeCache& make);

}  // namespace gen::cache
