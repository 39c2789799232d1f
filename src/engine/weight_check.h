// SPDX-License-Identifier: Apache-2.0
// What every engine checks of weight sources before it takes them.
#pragma once

#include <span>

#include "base/status.h"
#include "engine/weight.h"

namespace gen::engine {

/// kUnsupported for a type without a format; kFormat for a source that is empty, does not have the
/// size of its shape, or does not fit the others. Both name the tensor. kInternal if the role takes
/// another number of sources.
Status check_sources(WeightRole role, std::span<const WeightSource> sources);

}  // namespace gen::engine
