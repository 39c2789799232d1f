// SPDX-License-Identifier: Apache-2.0
// From how many rows on a product takes them in bfloat16 (engine::Weight::bf16_rows).
#pragma once

#include "cuda/ops/context.h"
#include "engine/weight.h"
#include "tensor/dtype.h"

namespace gen::cuda {

/// Of weights of a type with so many columns; whoever has a turn on the queue. BF16: where tensor
/// cores have it, for all rows but the few that have kernels of their own. Quantised weights are
/// made bfloat16 for it (linear_unpacked.cu), which pays from some rows on: it costs 2 bytes
/// written for each weight, and saves for each row what their own kernel takes longer than the
/// product in bfloat16. By the figures of docs/cuda.md, 8192 x 8192:
///   sm_90   45 us at the rate of an H200's memory; saved for a row 0.46 us of Q8_0, 0.9 of Q6_K
///           with cuBLASLt, 0.17 and 0.6 without. Other devices of the kind have slower memory
///           beside the same tensor cores, so it is more rows than this gives: 256, and 512.
///   sm_80   half as many products a clock cycle and less memory: 512
///   others  products of 16 bits with float32 sums are no faster than those of bytes: never
int64_t bf16_rows_from(const OpContext& context, DType type, int64_t cols);

}  // namespace gen::cuda
