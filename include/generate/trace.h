/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_tracer: a record of operations on tensors, for inspection and for compilers. Two things write
 * to it, with the same schema. A tracing cache passes every call on to the cache that it wraps, and
 * records each append and each read:
 *
 *   KVCacheAppendK   inputs: a layer's keys before, if it had any, and the new rows; output: its keys afterwards
 *   KVCacheGetK      input: a layer's keys; output: the rows that were read
 *
 * and the same with V for values, all with the attribute layer. Every tensor has its own number; a
 * layer's keys get a new one with each append and each truncation. Calls that fail or find nothing
 * are not recorded.
 *
 * A traced generation (gen_options_set_tracer) records each operation of each forward pass by name:
 * "rms_norm", "linear" with the attribute weight, and so on, with the tensors that it read and
 * wrote, [1, rows, columns]. Around rope_append and attention it records the appends to and the
 * reads from each session's cache, [kv heads, positions, elements]. If rows of a pass produce a
 * token, the pass ends with one or both of the following, which have no output; long passes contain
 * several of them:
 *
 *   logits           input: rows of logits, which are copied for sampling
 *   best             input: rows of logits of which the model returns only the largest: greedy sampling without
 *                    penalties, biases or log-probabilities
 *
 * For a custom model (custom_model.h) it records what the library sees. gen_forward_attention
 * writes rope_append, attention and the appends to and reads from the sessions' caches as above.
 * Each successful call of the forward function is recorded after them, as one operation:
 *
 *   forward          inputs: the tokens of its rows, [1, rows, 1], and the attention output of each layer;
 *                    output: the logits, [1, rows that want them, vocab_size], none if no row wants any
 *
 * Computations inside the function are invisible: the queries, keys and values that it passes to
 * attention are tensors without a producing operation, and states are not recorded. Caches that the
 * function owns are recorded like any traced cache if kv_cache_tracing_new made them with the same
 * tracer.
 */
#ifndef GENERATE_TRACE_H
#define GENERATE_TRACE_H

#include "base.h"
#include "generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A record of operations. One thread at a time, together with the caches and generations that write to it. */
typedef struct gen_tracer gen_tracer;

/**
 * Makes an empty record.
 *
 * @param out  receives it; free it with gen_tracer_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tracer_new(gen_tracer **out, gen_error *error);

/**
 * Number of operations recorded so far; 0 for NULL.
 *
 * Threads: one at a time, with the caches that write to it.
 * Since:   0.1
 */
GEN_API size_t gen_tracer_op_count(const gen_tracer *tracer);

/**
 * Returns one operation as a JSON object:
 * {"name":"KVCacheAppendK","inputs":[1,3],"outputs":[5],"attributes":{"layer":0}}.
 *
 * @param index     in [0, gen_tracer_op_count).
 * @param buf       [capacity] bytes, receives the text with a NUL; NULL to ask for the size.
 * @param capacity  of buf.
 * @param n         receives the length without the NUL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if tracer or n is NULL;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such operation, or buf is too small; *n is then the required size.
 * Threads: one at a time, with the caches that write to it.
 * Since:   0.1
 */
GEN_API gen_status gen_tracer_op(const gen_tracer *tracer, size_t index, char *buf, size_t capacity,
                                 size_t *n, gen_error *error);

/**
 * Writes the record as a Graphviz graph: boxes are tensors with their number and shape, ellipses operations.
 *
 * @param path  of the file; it appears whole, or not at all, and replaces one that is there.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if tracer or path is NULL;
 *         GEN_ERROR_IO naming the path;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time, with the caches that write to it.
 * Since:   0.1
 */
GEN_API gen_status gen_tracer_write_dot(const gen_tracer *tracer, const char *path,
                                        gen_error *error);

/**
 * Writes the record as JSON: {"ops":[…],"tensors":[{"id":1,"shape":[batch,seq,dim]},…]}, with
 * operations as in gen_tracer_op.
 *
 * @param path  as for gen_tracer_write_dot.
 * @return as gen_tracer_write_dot.
 * Threads: one at a time, with the caches that write to it.
 * Since:   0.1
 */
GEN_API gen_status gen_tracer_write_json(const gen_tracer *tracer, const char *path,
                                         gen_error *error);

/**
 * Releases the record; its last cache or generator frees it. NULL is fine.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void gen_tracer_free(gen_tracer *tracer);

/**
 * Records every forward pass of the generators made with these options. Results do not depend on
 * it; it costs a little time, and memory for each operation.
 *
 * @param tracer  receives the record; may be freed before the generators. NULL (the default) for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object. A generator that is traced runs one pass at a time, whatever its threads; the
 *          tracer must not be read meanwhile, nor given to a second generator that runs at the same time.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_tracer(gen_options *options, const gen_tracer *tracer,
                                          gen_error *error);

/**
 * Makes a cache that passes every call on to another cache and records it. From then on both show
 * the same content; they may be freed in any order, and count as one object for threads. Calls on
 * `inner` itself are not recorded. A tracing cache has no clone.
 *
 * @param inner   a cache for kv_cache_update; if it is still empty, a model can no longer use it.
 * @param tracer  receives the record.
 * @param out     receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if inner, tracer or out is NULL;
 *         GEN_ERROR_BUSY if inner is in use;
 *         GEN_ERROR_STATE if a model writes inner, or it is a session's;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tracing_new(kv_cache *inner, const gen_tracer *tracer, kv_cache **out,
                                        gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_TRACE_H */
