/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that may change or disappear in any version; exported under their own symbol node. Not part of
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

/** Of gen_model_forward_hidden: the hidden states after the model's final norm, from which it computes logits. */
#define GEN_HIDDEN_NORMED (-1)

/**
 * Evaluates tokens of one sequence, as gen_model_forward, and returns hidden states of all of them instead of logits:
 * what heads that draft are trained on.
 *
 * @param tokens    [n] token ids; they follow what the cache holds.
 * @param cache     grows by n positions.
 * @param layers    [n_layers] distinct: i for the hidden states before layer i, which are those after layer i - 1
 *                  (0: the embedding, L: after the last of L layers), or GEN_HIDDEN_NORMED. A custom model gives only
 *                  the features of its function, as 0 or as L, its num_layers; not both.
 * @param hidden    [capacity] float32, receives [n_layers, n, hidden] values, hidden being gen_model_config_hidden.
 * @return as gen_model_forward; GEN_ERROR_INVALID_ARGUMENT for no layers, or one that comes twice;
 *         GEN_ERROR_OUT_OF_RANGE for a layer that the model has not, or a buffer that is too small;
 *         GEN_ERROR_UNSUPPORTED for hidden states that a custom model does not give.
 *         On failure the cache has not changed.
 * Threads: any, one at a time per cache.
 * Cost:    as gen_model_forward, and a second buffer like `hidden` during the call.
 * Since:   0.1
 */
GEN_API gen_status gen_model_forward_hidden(const gen_model *model, const int32_t *tokens, size_t n, kv_cache *cache,
                                            const int32_t *layers, size_t n_layers, float *hidden, size_t capacity,
                                            gen_error *error);

/**
 * Time, bytes and operations of each instruction of a model's forward passes. For a custom model
 * these are "rope_append" and "attention" of each layer, run by gen_forward_attention, and "forward",
 * the rest of the function.
 */
typedef struct gen_profile gen_profile;

/**
 * Makes an empty profile.
 *
 * @param out  receives the profile; free it with gen_profile_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_profile_new(gen_profile **out, gen_error *error);

/**
 * Frees a profile; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_profile_free(gen_profile *profile);

/**
 * As gen_model_forward_batch; also adds the cost of each instruction to `profile`.
 *
 * @param profile  belongs to the first model it is used with.
 * @return as gen_model_forward_batch; GEN_ERROR_INVALID_ARGUMENT for a profile of another model;
 *         GEN_ERROR_BUSY if another call uses the profile.
 * Threads: any, one at a time per cache and per profile.
 * Cost:    as gen_model_forward_batch, and reading a clock twice for each instruction.
 * Since:   0.1
 */
GEN_API gen_status gen_model_forward_profiled(const gen_model *model, const int32_t *tokens,
                                              const int32_t *sequences,
                                              const uint8_t *wants_logits, size_t n_rows,
                                              kv_cache *const *caches, size_t n_caches,
                                              float *logits, size_t capacity, gen_profile *profile,
                                              gen_error *error);

/** Number of instructions seen; 0 for NULL. Threads: one at a time per profile. Since: 0.1 */
GEN_API size_t gen_profile_count(const gen_profile *profile);

/**
 * Name of an instruction, borrowed from the profile until its next use: the operation and, after a space, the
 * weights it multiplies (joined by '+') or its layer, "linear blk.0.ffn_down.weight"; empty for an instruction
 * that has not run. NULL outside [0, count).
 *
 * Threads: one at a time per profile.
 * Since:   0.1
 */
GEN_API const char *gen_profile_name(const gen_profile *profile, size_t index);

/**
 * A sum over all runs of an instruction: "seconds"; "calls"; "rows"; "bytes" that it must read from memory
 * (weights, or keys and values); "operations" (two for each product that is summed, as in gen_measure_peaks).
 *
 * @param value  receives the figure; 0 on failure.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; GEN_ERROR_OUT_OF_RANGE for the index;
 *         GEN_ERROR_OUT_OF_MEMORY if a pass had no memory for the profile, which is then incomplete.
 * Threads: one at a time per profile.
 * Since:   0.1
 */
GEN_API gen_status gen_profile_get(const gen_profile *profile, size_t index, const char *key,
                                   double *value, gen_error *error);

/**
 * Writes a timeline of the instructions as JSON in Chrome's trace event format, for chrome://tracing and ui.perfetto.dev:
 * one complete event ("ph":"X") for each run of an instruction with its name, "ts" and "dur" in microseconds, and "rows"
 * in its "args". On a device each instruction has ended when its event does. Only the first 262144 runs are kept.
 *
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if profile or n is NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY, also if a pass had no memory for the profile, which is then incomplete.
 * Threads: one at a time per profile.
 * Since:   0.1
 */
GEN_API gen_status gen_profile_chrome_trace(const gen_profile *profile, char *buf, size_t capacity, size_t *n,
                                            gen_error *error);

/**
 * Measures a peak rate of this machine, as a reference for other figures: "read_bandwidth" (bytes per
 * second read from memory), "fma_f32" (float32 operations per second), "dot_i8" (8-bit multiply-and-add
 * operations per second), "dot_bf16" (the same for bfloat16).
 *
 * @param threads  threads to use, 0 for one per usable CPU.
 * @param what     one of the names above.
 * @param value    receives the best of several runs.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown name or a bad number of threads;
 *         GEN_ERROR_UNSUPPORTED for "dot_bf16" where there is no such instruction; GEN_ERROR_OUT_OF_MEMORY.
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
