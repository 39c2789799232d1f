// SPDX-License-Identifier: Apache-2.0
// The kernels that the CPU engine uses. See base/kernels.h.
#pragma once

#include "base/cpu.h"
#include "engine/cpu/base/kernels.h"

namespace gen::engine::cpu {

/// For each operation the best kernels that run at `level`.
KernelTable kernel_table(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
