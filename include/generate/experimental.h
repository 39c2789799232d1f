/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that may change or go in any version; exported under their own symbol node. Not part of
 * generate.h: include this header by name.
 */
#ifndef GENERATE_EXPERIMENTAL_H
#define GENERATE_EXPERIMENTAL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One forward pass over rows of several sequences.
 *
 * Rows of a sequence are consecutive and follow what its cache holds. A row's logits do not depend on the
 * other rows, bit for bit.
 *
 * @param tokens        [n_rows] token ids.
 * @param sequences     [n_rows] index into caches, ascending; NULL when there is one cache.
 * @param wants_logits  [n_rows] non-zero where logits are wanted; NULL for all rows.
 * @param n_rows        at least 1, at most 512.
 * @param caches        [n_caches] distinct caches, each with at least one row; they grow by their rows.
 * @param logits        [capacity] float32, receives vocab_size values for each wanted row, in row order.
 * @return as gen_model_forward. On failure no cache has changed.
 * Threads: any, one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status gen_model_forward_batch(const gen_model *model, const int32_t *tokens,
                                           const int32_t *sequences, const uint8_t *wants_logits,
                                           size_t n_rows, kv_cache *const *caches, size_t n_caches,
                                           float *logits, size_t capacity, gen_error *error);

/**
 * Measures what this machine can do, to set figures against: "read_bandwidth" (bytes per second read from
 * memory), "fma_f32" (float32 operations per second), "dot_i8" (8-bit multiply-and-add operations per second).
 *
 * @param threads  threads to use, 0 for one per usable CPU.
 * @param what     one of the names above.
 * @param value    receives the best of several runs.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown name or a bad number of threads;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any; measure alone.
 * Cost:    about half a second, and 256 MB of memory for "read_bandwidth".
 * Since:   0.1
 */
GEN_API gen_status gen_measure_peaks(int32_t threads, const char *what, double *value,
                                     gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_EXPERIMENTAL_H */
