// SPDX-License-Identifier: Apache-2.0
// Code shared by the kernels of linear_float_rows.cu and linear_float_few.cu: both add a row's
// products of 16 columns, ascending, to one float32, and so have the same bits.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/linear/linear_end.cuh"

namespace gen::cuda {

struct TypeF16 {
  static constexpr bool kFactors = true;
  GEN_DEVICE static uint16_t round(float x) { return f32_to_f16(x); }
  GEN_DEVICE static void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    device::mma_f16(d, a, b);
  }
};
struct TypeBF16 {
  static constexpr bool kFactors = false;
  GEN_DEVICE static uint16_t round(float x) { return device::f32_to_bf16(x); }
  GEN_DEVICE static void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    device::mma_bf16(d, a, b);
  }
};

/// Rows in 16 bits: [rows][stride], and the divisor of each.
struct RoundedRows {
  uint16_t* data;
  float* factors;
  int32_t stride;
  int32_t cols;  // with zeros that make them a multiple of eight
};

struct FloatRowsView {
  RoundedRows x;
  LinearEnd end;
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
  bool fresh_weights;  // the predecessor has written them
};

/// Up to eight rows, by the kernel of linear_float_few.cu.
Status linear_float_few(const OpContext& context, DType type, const FloatRowsView& of);

/// Any number of rows, by that kernel or those of linear_float_rows.cu.
Status multiply_float_rows(const OpContext& context, DType type, const FloatRowsView& of);
/// The largest number of outputs per block of linear_float_rows.cu.
inline constexpr int64_t kLargestTileOutputs = 128;

/// The factor of a row before it is rounded, and the inverse factor of its sums.
struct RowRounding {
  float inverse = 1.0F;
  float factor = 1.0F;
};

/// The factors that bring a row's largest element to [1, 2). Called by all threads of a block of
/// kWarps; `most` is the largest magnitude among a thread's elements, `largest` has room for a
/// number per warp.
template <int32_t kWarps>
GEN_DEVICE RowRounding row_rounding(float most, const Shared<float>& largest) {
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    most = device::greatest(most, shuffle_xor(most, apart));
  }
  if (lane_of_warp() == 0) largest[warp_of_block()] = most;
  sync_threads();
  for (int32_t i = 0; i < kWarps; ++i) {
    const float other = largest[i];
    most = device::greatest(most, other);
  }
  // The exponent of the largest, clamped so that the factor and its inverse are normal numbers.
  uint32_t exponent = float_bits(most) >> 23;
  if (most == 0.0F || exponent == 255) exponent = 127;
  exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
  return {float_from_bits((254 - exponent) << 23), float_from_bits(exponent << 23)};
}

/// Eight elements in 16 bits.
template <typename Type>
GEN_DEVICE device::UInt4 round_piece(const float (&x)[8], float inverse) {
  uint32_t words[4];
  GEN_UNROLL
  for (int32_t i = 0; i < 4; ++i) {
    words[i] = static_cast<uint32_t>(Type::round(x[2 * i] * inverse)) |
               static_cast<uint32_t>(Type::round(x[2 * i + 1] * inverse)) << 16;
  }
  return {words[0], words[1], words[2], words[3]};
}

constexpr int32_t kFactorColumns = 64;                 // of a step
constexpr int32_t kFactorStride = kFactorColumns + 8;  // puts eight rows in different banks
constexpr int32_t kFactorPieces = kFactorColumns / 8;  // of 16 bytes, of a row

/// kRows rows of a factor as a thread of kThreads copies them to shared memory, a step after
/// another. Rows from `n` on and columns from `cols` on become zeros.
template <int32_t kRows, int32_t kThreads>
class FactorCopy {
 public:
  GEN_DEVICE FactorCopy(const void* first, size_t row_bytes, int64_t n, int32_t cols)
      : from_(static_cast<const uint8_t*>(first) + static_cast<size_t>(own_row()) * row_bytes +
              thread_x() % kFactorPieces * 16),
        apart_(static_cast<size_t>(kAtOnce) * row_bytes),
        n_(n < kRows ? static_cast<int32_t>(n) : kRows),
        left_(cols - thread_x() % kFactorPieces * 8) {}

  /// Starts to copy a step's columns to row `row` on; the next one follows.
  GEN_DEVICE void copy(const Shared<uint16_t>& to, int32_t row) {
    const uint8_t* from = from_;
    const int32_t at = (row + own_row()) * kFactorStride + thread_x() % kFactorPieces * 8;
    GEN_UNROLL
    for (int32_t i = 0; i < kRows; i += kAtOnce) {
      if (kRows < kAtOnce && own_row() >= kRows) continue;
      device::copy_async16(to, at + i * kFactorStride, from, left_ > 0 && own_row() + i < n_);
      from += apart_;
    }
    from_ += kFactorColumns * sizeof(uint16_t);
    left_ -= kFactorColumns;
  }

 private:
  static constexpr int32_t kAtOnce = kThreads / kFactorPieces;
  GEN_DEVICE static int32_t own_row() { return thread_x() / kFactorPieces; }

  const uint8_t* from_;
  size_t apart_;
  int32_t n_;
  int32_t left_;
};

}  // namespace gen::cuda
