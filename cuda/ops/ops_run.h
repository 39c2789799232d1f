// SPDX-License-Identifier: Apache-2.0
// The operations of the CUDA engine as free functions, one .cu file each; engine/ops.h says what
// they do. They enqueue and return.
#pragma once

#include "base/status.h"
#include "cuda/ops/context.h"
#include "engine/ops.h"

namespace gen::cuda {

/// What the kernels that the current device runs were compiled for, 75 … 120; 0 if it has none.
int32_t kernels_compiled_for() noexcept;

Status run(const OpContext& context, const engine::EmbedArgs& args);
Status run(const OpContext& context, const engine::PackArgs& args);
/// Makes the other forms of packed rows from their float32.
Status pack_in_place(const OpContext& context, const engine::Activations& rows);
Status run(const OpContext& context, const engine::RmsNormArgs& args);
Status run(const OpContext& context, const engine::LinearArgs& args);
Status run(const OpContext& context, const engine::GatedArgs& args);
Status run(const OpContext& context, const engine::ActivateArgs& args);
Status run(const OpContext& context, const engine::AddArgs& args);
Status run(const OpContext& context, const engine::RopeAnglesArgs& args);
Status run(const OpContext& context, const engine::RopeAppendArgs& args);
Status run(const OpContext& context, const engine::AttentionArgs& args);
Status run(const OpContext& context, const engine::SelectRowsArgs& args);
Status run(const OpContext& context, const engine::BestArgs& args);
Status run(const OpContext& context, const engine::ScanArgs& args);
Status run(const OpContext& context, const engine::AdapterInArgs& args);

}  // namespace gen::cuda
