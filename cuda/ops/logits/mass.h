// SPDX-License-Identifier: Apache-2.0
// The probability mass of the tokens of rows whose best tokens have been found.
#pragma once

#include "cuda/ops/ops_run.h"

namespace gen::cuda {

/// Writes args.mass and args.slice (engine/ops.h); the best of the rows must have been found.
Status weigh(const OpContext& context, const engine::BestArgs& args);

}  // namespace gen::cuda
