// SPDX-License-Identifier: Apache-2.0
// The number of rows from which on a product reads them as bfloat16 (engine::Weight::bf16_rows).
#pragma once

#include "cuda/ops/context.h"
#include "engine/weight.h"
#include "tensor/dtype.h"

namespace gen::cuda {

/// For weights of a type with this many columns. Called with a turn on the queue. BF16 weights: if
/// tensor cores support bfloat16, all row counts except the few with kernels of their own.
/// Quantised weights are converted to bfloat16 (linear_unpacked.cu), which pays from some number of
/// rows on: it writes 2 bytes per weight, and saves per row the difference between their own kernel
/// and the bfloat16 product. With the figures of docs/cuda.md, 8192 x 8192:
///   sm_90   45 us at the rate of an H200's memory; saved for a row 0.46 us of Q8_0, 0.9 of Q6_K
///           with cuBLASLt, 0.17 and 0.6 without. Other devices of the kind have slower memory
///           beside the same tensor cores, so it is more rows than this gives: 256, and 512.
///   sm_80   half as many products a clock cycle and less memory: 512
///   others  products of 16 bits with float32 sums are no faster than those of bytes: never
int64_t bf16_rows_from(const OpContext& context, DType type, int64_t cols);

}  // namespace gen::cuda
