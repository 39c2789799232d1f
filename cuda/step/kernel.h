// SPDX-License-Identifier: Apache-2.0
// What is started to run a step as one kernel, and to compare two ways of running it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "cuda/step/program.h"

namespace gen::cuda {

/// Blocks that the device holds at once with so much dynamic shared memory; 0 where it cannot run
/// the kernel: below sm_80, without cooperative launches, with too little shared memory. A dry run
/// takes the last for granted.
int32_t step_blocks(const OpContext& context, size_t shared_bytes) noexcept;

/// Starts a program with all blocks that step_blocks() gave.
Status start_step(const OpContext& context, const StepView& program, int32_t blocks,
                  size_t shared_bytes);

/// Copies the bytes of all spans, one after another, to `to`.
Status keep_spans(const OpContext& context, const StepSpan* spans, int32_t n, uint8_t* to);
/// Sets *differs where a byte of the spans is another one than keep_spans() found.
Status compare_spans(const OpContext& context, const StepSpan* spans, int32_t n,
                     const uint8_t* kept, uint32_t* differs);

}  // namespace gen::cuda
