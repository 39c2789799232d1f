// SPDX-License-Identifier: Apache-2.0
// The operations of the CUDA engine as free functions, one .cu file each; engine/ops.h describes
// them. They enqueue and return.
#pragma once

#include "base/status.h"
#include "cuda/ops/context.h"
#include "engine/ops.h"

namespace gen::cuda {

/// The architecture that the current device's kernels were compiled for, 75 … 120; 0 if none fit.
int32_t kernels_compiled_for() noexcept;

#define GEN_OP(name, ...) Status run(const OpContext& context, const engine::name##Args& args);
#include "engine/op_list.inc"

/// Computes the other forms of packed rows from their float32.
Status pack_in_place(const OpContext& context, const engine::Activations& rows);

}  // namespace gen::cuda
