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
  /// Operations [first, end) of the list are the program; the others stay what they are: what
  /// comes before the first product of a step, and draws of many tokens behind the last.
  size_t first = 0;
  size_t end = 0;
  std::vector<StepHead> heads;
  std::vector<StepTask> tasks;
  int32_t first_weights = 0;
  size_t scratch_bytes = 0;  // device memory that instructions hand results on in
  size_t shared_bytes = 0;
  std::vector<StepSpan> written;  // by the whole list, caches aside
};

/// Nothing where an operation has no instruction, the list is not of one row, or would not do the
/// same if it ran again. For `blocks` blocks; `scratch` may be null while only sizes are asked for.
std::optional<StepCode> compile_step(std::span<const engine::OpArgs> list, int32_t blocks,
                                     uint8_t* scratch);

}  // namespace gen::cuda
