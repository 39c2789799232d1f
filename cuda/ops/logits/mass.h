// SPDX-License-Identifier: Apache-2.0
// What the tokens of rows weigh whose best have been found.
#pragma once

#include "cuda/ops/ops_run.h"

namespace gen::cuda {

/// Writes args.mass and args.part (engine/ops.h); the best of the rows must have been found.
Status weigh(const OpContext& context, const engine::BestArgs& args);

}  // namespace gen::cuda
