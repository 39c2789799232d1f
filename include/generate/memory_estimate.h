/* SPDX-License-Identifier: Apache-2.0 */
/* Will it fit? The memory that a model, a generator and a session need, before anything is loaded. */
#ifndef GENERATE_MEMORY_ESTIMATE_H
#define GENERATE_MEMORY_ESTIMATE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The outcome of gen_estimate_memory; immutable. */
typedef struct gen_memory_estimate gen_memory_estimate;

/**
 * Estimates what loading a file with these options and filling one session to the end of its
 * context would allocate. It goes through all allocations without loading weights, computing or
 * touching the memory: the figures are those that a gen_allocator and, for a model on a device, a
 * gen_gpu_allocator would count. If a pool of gen_options_set_paged_kv cannot hold a whole context,
 * the session fills the pool; a server whose sessions share the pool takes weights, workspace and the
 * pool's size in all. A head that drafts counts, of the model's file or of
 * gen_options_set_eagle; a draft model, first layers and lookups do not. Tokens, texts and other
 * small objects on the process' own heap are not included. The device must exist; no memory is
 * taken from it, but gpu_layers "auto" asks how much it has left.
 *
 * @param path           GGUF file; its header and tokenizer are read, and the first and last 4096 bytes of each tensor,
 *                       which tell one model from another.
 * @param model_options  as for gen_model_load, NULL for the defaults; its allocators and progress are not called.
 * @param options        as for gen_create, NULL for the defaults.
 * @param out            receives the estimate; free it with gen_memory_estimate_free.
 * @return as gen_model_load and gen_create, without GEN_ERROR_CANCELLED.
 * Threads: any.
 * Cost:    reads the vocabulary, and some microseconds for each step of filling the context.
 * Since:   0.1
 */
GEN_API gen_status gen_estimate_memory(const char *path, const gen_model_options *model_options,
                                       const gen_options *options, gen_memory_estimate **out, gen_error *error);

/**
 * A figure in bytes: "weights" of the loaded model, and of the head that drafts for it; "workspace",
 * scratch memory of their forward passes, as many as run at once, and the state of recurrent layers;
 * "cache", keys and values of one session with a full context or pool, and those of its head;
 * "snapshots", the most that snapshots of its state may take, see
 * gen_options_set_state_snapshot_budget, and those that a prefix cache may keep; "peak", the maximum
 * held at any time, loading included, with one session, and with what its pool has taken besides:
 * blocks that are free again, and those of a prefix cache; "mapped", what stays mapped of the file:
 * pages that the system may drop, not part of "peak", and used again only as far as weights are read
 * in place; "stream", weights read per token, as in gen_model_memory; "file". The first
 * five count host memory, including pinned memory; "device_weights", "device_workspace",
 * "device_cache", "device_snapshots" and "device_peak" count device memory and are 0 for a model on
 * the CPU.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; then *bytes is 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_memory_estimate_get(const gen_memory_estimate *estimate, const char *key, size_t *bytes,
                                           gen_error *error);

/**
 * Frees the estimate; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_memory_estimate_free(gen_memory_estimate *estimate);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_MEMORY_ESTIMATE_H */
