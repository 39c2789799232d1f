// SPDX-License-Identifier: Apache-2.0
// The operations of the CPU engine as free functions, one file each. Arguments as in engine/ops.h.
#pragma once

#include "base/status.h"
#include "engine/cpu/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

Status run_embed(CpuContext& context, const EmbedArgs& args);
Status run_pack(CpuContext& context, const PackArgs& args);
Status run_rms_norm(CpuContext& context, const RmsNormArgs& args);
Status run_linear(CpuContext& context, const LinearArgs& args);
Status run_rope_angles(CpuContext& context, const RopeAnglesArgs& args);
Status run_rope_append(CpuContext& context, const RopeAppendArgs& args);
Status run_attention(CpuContext& context, const AttentionArgs& args);
Status run_select_rows(CpuContext& context, const SelectRowsArgs& args);
Status run_add(CpuContext& context, const AddArgs& args);
Status run_swiglu(CpuContext& context, const SwiGluArgs& args);

}  // namespace gen::engine::cpu
