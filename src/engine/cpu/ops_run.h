// SPDX-License-Identifier: Apache-2.0
// The operations of the CPU engine as free functions, one file each; engine/ops.h says what they
// do. In a dry run they only take their scratch memory.
#pragma once

#include "base/status.h"
#include "engine/cpu/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const EmbedArgs& args);
Status run(CpuContext& context, const PackArgs& args);
Status run(CpuContext& context, const RmsNormArgs& args);
Status run(CpuContext& context, const LinearArgs& args);
Status run(CpuContext& context, const RopeAnglesArgs& args);
Status run(CpuContext& context, const RopeAppendArgs& args);
Status run(CpuContext& context, const AttentionArgs& args);
Status run(CpuContext& context, const SelectRowsArgs& args);
Status run(CpuContext& context, const BestArgs& args);
Status run(CpuContext& context, const ScanArgs& args);
Status run(CpuContext& context, const AdapterInArgs& args);
Status run(CpuContext& context, const RouteArgs& args);
Status run(CpuContext& context, const ExpertsArgs& args);
Status run(CpuContext& context, const CombineArgs& args);
Status run(CpuContext& context, const AddArgs& args);
Status run(CpuContext& context, const GatedArgs& args);
Status run(CpuContext& context, const ActivateArgs& args);

}  // namespace gen::engine::cpu
