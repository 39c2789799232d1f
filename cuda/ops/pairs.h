// SPDX-License-Identifier: Apache-2.0
// Fusion of two consecutive operations into one kernel, for steps of one row, where launches and
// memory latency cost more than the arithmetic:
//   norm, product                   every block of the product normalises the row for itself
//   rotation and append, attention  every block of attention rotates its own heads
// The conditions are stated beside the kernels. Memory has the same bits as after both operations,
// with one exception: q, which is rotated for the following attention only, is not changed.
#pragma once

#include <span>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "engine/ops.h"

namespace gen::cuda {

/// Enqueues a list, with pairs fused if context.pairs is set.
Status run_list(const OpContext& context, std::span<const engine::OpArgs> list);

/// Whether a product may include the norm before it (linear.cu), and the fused pair.
bool norm_pairs(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear);
Status run_pair(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear);

/// Whether attention may rotate and store the row itself (attention.cu), and the fused pair.
bool append_pairs(const OpContext& context, const engine::RopeAppendArgs& append,
                  const engine::AttentionArgs& attention);
Status run_pair(const OpContext& context, const engine::RopeAppendArgs& append,
                const engine::AttentionArgs& attention);

}  // namespace gen::cuda
