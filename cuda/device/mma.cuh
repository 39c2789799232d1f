// SPDX-License-Identifier: Apache-2.0
// Tensor-core products of one warp, d += a * b or d = a * b + c, and the loads that make their
// fragments. All 32 lanes take part. With g = lane / 4 and t = lane % 4 a lane holds, of a 16 x 8
// product:
//   d         rows g and g + 8, columns 2t and 2t + 1:  d[0..1] of row g, d[2..3] of row g + 8
//   16-bit a  a[0] row g, a[1] row g + 8, both k = 2t, 2t + 1; a[2], a[3] the same at k + 8
//   16-bit b  b[0] k = 2t, 2t + 1 of column g; b[1] the same at k + 8
//   8-bit a   a[0] row g, a[1] row g + 8, both k = 4t … 4t + 3; a[2], a[3] the same at k + 16
//   8-bit b   b[0] k = 4t … 4t + 3 of column g; b[1] the same at k + 16
// The lower k is in the lower bits. Sums of the 16-bit products are in float32, in an order and
// with roundings of the hardware's own; 8-bit products are exact.
#pragma once

#include <cstdint>

#include "cuda/device/qualifiers.cuh"
#include "cuda/device/shared.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/mma.h"
#else

namespace gen::cuda::device {

/// k = 8: a[0..1], b of one register.
GEN_DEVICE void mma_f16_k8(float (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

/// k = 16, float16; on sm_75 two products of half the depth.
GEN_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if GEN_CUDA_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  mma_f16_k8(d, {a[0], a[1]}, b[0]);
  mma_f16_k8(d, {a[2], a[3]}, b[1]);
#endif
}

/// k = 16, bfloat16, from sm_80 on; below it a trap, so the caller has to choose another way.
GEN_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if GEN_CUDA_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

/// k = 32, signed bytes: d = a * b + c, c in all elements; on sm_75 four products of 8 x 8 and half
/// the depth.
GEN_DEVICE void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t c) {
#if GEN_CUDA_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %10, %10, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c));
#else
  GEN_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = c;
  GEN_UNROLL
  for (int half = 0; half < 4; ++half) {
    const int row = half % 2;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(d[2 * row]), "+r"(d[2 * row + 1])
                 : "r"(a[half]), "r"(b[half / 2]));
  }
#endif
}

/// k = 16, signed bytes: a[0..1] and b of one register, as the lower half of k = 32.
GEN_DEVICE void mma_s8_k16(int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b, int32_t c) {
#if GEN_CUDA_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%7, %7, %7, %7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c));
#else
  GEN_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = c;
  GEN_UNROLL
  for (int row = 0; row < 2; ++row) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(d[2 * row]), "+r"(d[2 * row + 1])
                 : "r"(a[row]), "r"(b));
  }
#endif
}

/// Matrices of 8 rows of 16 bytes: lane l names row l % 8 of matrix l / 8 by the element at which
/// it begins (16-byte aligned), and gets of each matrix the 32 bits at row g, 16-bit columns 2t and
/// 2t + 1; transposed: rows 2t and 2t + 1 of column g. Of two matrices lanes 0 … 15 name the rows.
template <typename T, typename Index>
GEN_DEVICE void load_matrices(uint32_t (&r)[4], const Shared<T>& from, Index i) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from.address(i))
               : "memory");
}
template <typename T, typename Index>
GEN_DEVICE void load_matrices_transposed(uint32_t (&r)[4], const Shared<T>& from, Index i) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from.address(i))
               : "memory");
}
template <typename T, typename Index>
GEN_DEVICE void load_matrices(uint32_t (&r)[2], const Shared<T>& from, Index i) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(from.address(i))
               : "memory");
}
template <typename T, typename Index>
GEN_DEVICE void load_matrices_transposed(uint32_t (&r)[2], const Shared<T>& from, Index i) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(from.address(i))
               : "memory");
}

}  // namespace gen::cuda::device
#endif
