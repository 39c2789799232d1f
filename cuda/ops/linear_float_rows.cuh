// SPDX-License-Identifier: Apache-2.0
// What the kernels of linear_float_rows.cu and linear_float_few.cuh have in common: both add a
// row's products of 16 columns, ascending, to one float32, and so have the same bits.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/linear_end.cuh"

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

/// Rows in 16 bits: [rows][stride], zeros behind the columns, and what each was divided by.
struct RoundedRows {
  uint16_t* data;
  float* factors;
  int32_t stride;
};

struct FloatRowsView {
  RoundedRows x;
  LinearEnd end;
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
};

}  // namespace gen::cuda
