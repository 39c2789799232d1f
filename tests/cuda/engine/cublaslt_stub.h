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
  int way;        /* 0 … */
  int whole_sums; /* it was asked for ways that do not split the columns */
};
/* Enqueues it; 0, or a number of cuBLASLt's. */
typedef int (*stub_multiply)(const struct stub_product* product, void* stream);
/* How many ways there are; gen_test_ways, 1 where it is not exported. */
typedef int (*stub_ways)(void);
