// SPDX-License-Identifier: Apache-2.0
// The engines of a plan, by number.
#pragma once

#include <memory>
#include <vector>

#include "engine/engine.h"

namespace gen::graph {

using Engines = std::vector<std::shared_ptr<engine::Engine>>;

}  // namespace gen::graph
