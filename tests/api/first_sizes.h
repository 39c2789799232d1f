/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the public structs in version 0.1; see first_sizes.c. */
#ifndef TESTS_API_FIRST_SIZES_H
#define TESTS_API_FIRST_SIZES_H

#include <stddef.h>

extern const struct first_sizes {
  size_t allocator, forward, metrics_sink, span, forward_batch, token;
} first_sizes;

#endif /* TESTS_API_FIRST_SIZES_H */
