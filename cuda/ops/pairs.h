// SPDX-License-Identifier: Apache-2.0
// Operations that follow one another in a list and that one kernel does, where starts of kernels
// and ways to memory take more time than what is computed: in steps of one row.
//   norm, product                   every block of the product makes the normed row for itself
//   rotation and append, attention  every block of attention rotates the heads that it has
// Which ones can is said beside the kernels. What lies in memory afterwards, to the bit, is what
// the two operations leave there; but q, which is rotated for the attention behind it alone, stays
// as it was.
#pragma once

#include <span>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "engine/ops.h"

namespace gen::cuda {

/// Enqueues a list, pairs as one where context.pairs says so.
Status run_list(const OpContext& context, std::span<const engine::OpArgs> list);

/// Whether a product may make its own input in place of the norm before it (linear.cu), and both.
bool norm_pairs(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear);
Status run_pair(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear);

/// Whether attention may rotate and store the row by itself (attention.cu), and both.
bool append_pairs(const OpContext& context, const engine::RopeAppendArgs& append,
                  const engine::AttentionArgs& attention);
Status run_pair(const OpContext& context, const engine::RopeAppendArgs& append,
                const engine::AttentionArgs& attention);

}  // namespace gen::cuda
