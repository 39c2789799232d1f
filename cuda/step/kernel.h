// SPDX-License-Identifier: Apache-2.0
// Launches a step as one kernel, and the kernels that compare it with the step's graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "cuda/step/program.h"

namespace gen::cuda {

/// The number of resident blocks with this much dynamic shared memory; 0 if the device cannot run
/// the kernel: below sm_80, without cooperative launches, or with too little shared memory. A dry
/// run assumes enough shared memory.
int32_t step_blocks(const OpContext& context, size_t shared_bytes) noexcept;

/// Launches a program with the number of blocks from step_blocks().
Status start_step(const OpContext& context, const StepView& program, int32_t blocks,
                  size_t shared_bytes);

/// Copies the bytes of all spans, one after another, to `to`.
Status keep_spans(const OpContext& context, const StepSpan* spans, int32_t n, uint8_t* to);
/// Sets *differs if a byte of the spans differs from those that keep_spans() copied.
Status compare_spans(const OpContext& context, const StepSpan* spans, int32_t n,
                     const uint8_t* kept, uint32_t* differs);

}  // namespace gen::cuda
