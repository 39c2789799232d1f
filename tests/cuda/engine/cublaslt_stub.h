/* SPDX-License-Identifier: Apache-2.0 */
/* What the stub of cuBLASLt asks of the program that loaded it, which exports gen_test_multiply. */
#pragma once

#include <stdint.h>

/* d[j, i] = sum_k a[i, k] b[j, k] (+ c[j, i], which lies as d does) in float32; a and b of 16 bits. Device memory. */
struct stub_product {
  const void* a;
  const void* b;
  float* d;
  int bf16;
  const float* c; /* or null */
  int64_t k, a_rows, b_rows, a_stride, b_stride, d_stride;
};
/* Enqueues it; 0, or a number of cuBLASLt's. */
typedef int (*stub_multiply)(const struct stub_product* product, void* stream);
