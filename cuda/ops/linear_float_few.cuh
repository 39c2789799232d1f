// SPDX-License-Identifier: Apache-2.0
// Products of F16 and BF16 weights for up to eight rows with the bits of linear_float_rows.cu, for
// whoever wants one result for a row: the same products of 16 columns in the same order, but small
// tiles, since the bytes of the weights are all that takes time.
//
//   Work    A warp is all rows by eight outputs (and their gates), a block four warps. The upper
//           half of each tensor-core product is zeros.
//   Bytes   W once, x once for every 32 outputs.
//   Shared  45 KiB: eight steps of 64 columns, seven of which are under way; four steps, 41 KiB, of
//           a gated product.
#pragma once

#include "cuda/ops/linear_float_rows.cuh"

namespace gen::cuda {

constexpr int32_t kFewThreads = 128;
constexpr int32_t kFewOutputs = kFewThreads / 32 * 8;
constexpr int32_t few_steps(bool gated) noexcept { return gated ? 4 : 8; }
/// Rows of x, of weights, and of those of the other half of a gate.
constexpr int32_t few_rows(bool gated) noexcept {
  return kMatvecRows + kFewOutputs * (gated ? 2 : 1);
}
constexpr size_t few_elements(bool gated) noexcept {
  return static_cast<size_t>(few_rows(gated) * kFactorStride);
}

template <typename Type, bool kGated>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kFewThreads, 8)  // else ptxas spills
    linear_float_few_kernel(FloatRowsView of) {
  constexpr int32_t kSteps = few_steps(kGated);
  constexpr size_t kElements = few_elements(kGated);
  const int64_t first_output = int64_t{block_x()} * kFewOutputs;
  const int32_t lane = lane_of_warp();
  const int32_t n = (of.x.cols + kFactorColumns - 1) / kFactorColumns;
  const auto stage = [](int32_t i) {
    return dynamic_shared<uint16_t>(static_cast<size_t>(i) * kElements * sizeof(uint16_t),
                                    kElements);
  };
  const size_t at = static_cast<size_t>(first_output) * of.row_bytes;
  const int64_t outputs = of.end.rows - first_output;
  FactorCopy<kFewOutputs, kFewThreads> weights(of.weight + at, of.row_bytes, outputs, of.x.cols);
  FactorCopy<kFewOutputs, kFewThreads> others((kGated ? of.up_weight : of.weight) + at,
                                              of.row_bytes, outputs, of.x.cols);
  FactorCopy<kMatvecRows, kFewThreads> rows(
      of.x.data, static_cast<size_t>(of.x.stride) * sizeof(uint16_t), of.end.y.rows, of.x.cols);
  const auto copy_weights = [&](const Shared<uint16_t>& to) {
    weights.copy(to, kMatvecRows);
    if constexpr (kGated) others.copy(to, kMatvecRows + kFewOutputs);
  };
  for (int32_t i = 0; i < kSteps - 1 && i < n; ++i) copy_weights(stage(i));
  after_predecessor();
  for (int32_t i = 0; i < kSteps - 1; ++i) {
    if (i < n) rows.copy(stage(i), 0);
    device::commit_copies();  // the first has all weights of these steps in it
  }
  float sums[4] = {};
  float ups[4] = {};
  // Of a matrix of eight rows, four pieces of eight columns.
  const int32_t place = lane % 8 * kFactorStride + lane / 8 * 8;
  const int32_t own = (kMatvecRows + warp_of_block() * 8) * kFactorStride;
  int32_t now = 0;
  for (int32_t i = 0; i < n; ++i) {
    device::wait_copies<kSteps - 2>();
    sync_threads();  // all have done the step before, so the next one may go there
    if (i + kSteps - 1 < n) {
      const Shared<uint16_t> to = stage(now == 0 ? kSteps - 1 : now - 1);
      copy_weights(to);
      rows.copy(to, 0);
    }
    device::commit_copies();
    const Shared<uint16_t> step = stage(now);
    now = now + 1 == kSteps ? 0 : now + 1;
    const int32_t left = of.x.cols - i * kFactorColumns;
    GEN_UNROLL
    for (int32_t k = 0; k < kFactorColumns; k += 32) {
      uint32_t x[4];
      uint32_t w[4];
      uint32_t u[4] = {};
      device::load_matrices(x, step, place + k);
      device::load_matrices(w, step, own + place + k);
      if constexpr (kGated) {
        device::load_matrices(u, step, own + kFewOutputs * kFactorStride + place + k);
      }
      GEN_UNROLL
      for (int32_t half = 0; half < 2; ++half) {
        if (k + half * 16 >= left) continue;
        const uint32_t a[4] = {x[2 * half], 0, x[2 * half + 1], 0};
        Type::multiply(sums, a, {w[2 * half], w[2 * half + 1]});
        if constexpr (kGated) Type::multiply(ups, a, {u[2 * half], u[2 * half + 1]});
      }
    }
  }
  const int64_t t = lane / 4;
  if (t >= of.end.y.rows) return;
  float factor = 1.0F;
  if constexpr (Type::kFactors) factor = of.x.factors[t];
  GEN_NO_UNROLL
  for (int32_t i = 0; i < 2; ++i) {
    const int64_t output = first_output + warp_of_block() * 8 + lane % 4 * 2 + i;
    if (output >= of.end.rows) continue;
    finish_output(of.end, t, output, (i == 0 ? sums[0] : sums[1]) * factor,
                  (i == 0 ? ups[0] : ups[1]) * factor);
  }
}

template <typename Type>
Status launch_float_few(const OpContext& context, const FloatRowsView& of) {
  const bool gated = of.end.gated;
  const auto kernel =
      gated ? linear_float_few_kernel<Type, true> : linear_float_few_kernel<Type, false>;
  return run_kernel(context, "linear_few", kernel, grid_of(of.end.rows, kFewOutputs), kFewThreads,
                    static_cast<size_t>(few_steps(gated)) * few_elements(gated) * sizeof(uint16_t),
                    of);
}

}  // namespace gen::cuda
