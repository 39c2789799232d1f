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
//   Tried   nothing on a device yet.
#pragma once

#include "cuda/ops/linear_float_rows.cuh"

namespace gen::cuda {

constexpr int32_t kFewThreads = 128;
constexpr int32_t kFewOutputs = kFewThreads / 32 * 8;
constexpr int32_t kFewColumns = 64;              // of a step
constexpr int32_t kFewStride = kFewColumns + 8;  // eight rows lie in different banks
constexpr int32_t kFewPieces = kFewColumns / 8;  // of 16 bytes

constexpr int32_t few_steps(bool gated) noexcept { return gated ? 4 : 8; }
/// Rows of x, of weights, and of those of the other half of a gate.
constexpr int32_t few_rows(bool gated) noexcept {
  return kMatvecRows + kFewOutputs * (gated ? 2 : 1);
}
constexpr size_t few_elements(bool gated) noexcept {
  return static_cast<size_t>(few_rows(gated) * kFewStride);
}

template <bool kGated>
GEN_DEVICE Shared<uint16_t> few_step(int32_t i) {
  constexpr size_t kElements = few_elements(kGated);
  return dynamic_shared<uint16_t>(
      static_cast<size_t>(i % few_steps(kGated)) * kElements * sizeof(uint16_t), kElements);
}

/// Starts to copy a step's columns of the rows of x.
template <bool kGated>
GEN_DEVICE void copy_few_rows(const FloatRowsView& of, int32_t step) {
  const Shared<uint16_t> to = few_step<kGated>(step);
  for (int32_t i = thread_x(); i < kMatvecRows * kFewPieces; i += kFewThreads) {
    const int32_t row = i / kFewPieces;
    const int32_t c = step * kFewColumns + i % kFewPieces * 8;
    const bool valid = c < of.x.stride && row < of.end.y.rows;
    device::copy_async16(to, row * kFewStride + i % kFewPieces * 8,
                         valid ? of.x.data + row * of.x.stride + c : of.x.data, valid);
  }
}

/// The same of the weights.
template <bool kGated>
GEN_DEVICE void copy_few_weights(const FloatRowsView& of, int64_t first_output, int32_t step) {
  const Shared<uint16_t> to = few_step<kGated>(step);
  constexpr int32_t kRows = few_rows(kGated) - kMatvecRows;
  for (int32_t i = thread_x(); i < kRows * kFewPieces; i += kFewThreads) {
    const int32_t row = i / kFewPieces;
    const int32_t c = step * kFewColumns + i % kFewPieces * 8;
    const int64_t output = first_output + row % kFewOutputs;
    const bool valid = c < of.x.stride && output < of.end.rows;
    const uint8_t* const weight = kGated && row >= kFewOutputs ? of.up_weight : of.weight;
    const size_t at =
        static_cast<size_t>(output) * of.row_bytes + static_cast<size_t>(c) * sizeof(uint16_t);
    device::copy_async16(to, (kMatvecRows + row) * kFewStride + i % kFewPieces * 8,
                         valid ? weight + at : weight, valid);
  }
}

template <typename Type, bool kGated>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kFewThreads) linear_float_few_kernel(FloatRowsView of) {
  constexpr int32_t kSteps = few_steps(kGated);
  const int64_t first_output = int64_t{block_x()} * kFewOutputs;
  const int32_t lane = lane_of_warp();
  const int32_t n = (of.x.stride + kFewColumns - 1) / kFewColumns;
  for (int32_t i = 0; i < kSteps - 1 && i < n; ++i) copy_few_weights<kGated>(of, first_output, i);
  after_predecessor();
  for (int32_t i = 0; i < kSteps - 1; ++i) {
    if (i < n) copy_few_rows<kGated>(of, i);
    device::commit_copies();  // the first has all weights of these steps in it
  }
  float sums[4] = {};
  float ups[4] = {};
  // Of a matrix of eight rows, four pieces of eight columns.
  const int32_t place = lane % 8 * kFewStride + lane / 8 * 8;
  const int32_t weights = (kMatvecRows + warp_of_block() * 8) * kFewStride;
  for (int32_t i = 0; i < n; ++i) {
    device::wait_copies<kSteps - 2>();
    sync_threads();  // all have done the step before, so the next one may go there
    if (i + kSteps - 1 < n) {
      copy_few_weights<kGated>(of, first_output, i + kSteps - 1);
      copy_few_rows<kGated>(of, i + kSteps - 1);
    }
    device::commit_copies();
    const Shared<uint16_t> step = few_step<kGated>(i);
    GEN_UNROLL
    for (int32_t k = 0; k < kFewColumns; k += 32) {
      uint32_t x[4];
      uint32_t w[4];
      uint32_t u[4] = {};
      device::load_matrices(x, step, place + k);
      device::load_matrices(w, step, weights + place + k);
      if constexpr (kGated) {
        device::load_matrices(u, step, weights + kFewOutputs * kFewStride + place + k);
      }
      GEN_UNROLL
      for (int32_t half = 0; half < 2; ++half) {
        if (i * kFewColumns + k + half * 16 >= of.x.stride) continue;
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
