// SPDX-License-Identifier: Apache-2.0
// The operations of the CPU engine as free functions, one file each; engine/ops.h describes them.
// In a dry run they only allocate their scratch memory.
#pragma once

#include "base/status.h"
#include "engine/cpu/base/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

#define GEN_OP(name, ...) Status run(CpuContext& context, const name##Args& args);
#include "engine/op_list.inc"

}  // namespace gen::engine::cpu
