// SPDX-License-Identifier: Apache-2.0
// compile_step(): a list of operations of a step of one row as a program for one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cuda/step/program.h"
#include "engine/ops.h"

namespace gen::cuda {

struct StepCode {
  /// Operations [first, end) of the list form the program. The others run as usual: those before
  /// the first product of a step, and selections of many tokens after the last.
  size_t first = 0;
  size_t end = 0;
  std::vector<StepHead> heads;
  std::vector<StepTask> tasks;
  int32_t first_weights = 0;
  size_t scratch_bytes = 0;  // device memory for intermediate results
  size_t shared_bytes = 0;
  std::vector<StepSpan> written;  // by the whole list, except caches
};

/// Empty if an operation has no instruction, the list is not of one row, or running it twice would
/// give another result. For `blocks` blocks; `scratch` may be null if only sizes are needed.
std::optional<StepCode> compile_step(std::span<const engine::OpArgs> list, int32_t blocks,
                                     uint8_t* scratch);

}  // namespace gen::cuda
