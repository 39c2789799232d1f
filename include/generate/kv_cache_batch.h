/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of many sequences: one kv_cache that holds the keys and values of all sequences of a
 * server, written and read one batch of tokens at a time. Each of its cells holds one position of
 * one layer's keys and values, and may belong to several sequences that share a prefix. The order
 * of calls:
 *
 *   kv_cache_causal_new, …   how far back tokens can see; then kv_cache_set_config and kv_cache_set_allocator if needed
 *   kv_cache_init            the size
 *   kv_cache_start_forward   for each pass: which tokens of which sequences
 *   kv_cache_set_layer, kv_cache_put, kv_cache_get_masked   for each layer of the pass
 *   kv_cache_remove, kv_cache_copy_prefix, kv_cache_compact between passes
 *
 * Data is float32; output shapes name the fastest dimension first: keys [k_dim, kv_heads, n] means
 * that element d of head h of token i is k[(i * kv_heads + h) * k_dim + d].
 *
 * Functions of kv_cache.h that are about one sequence answer GEN_ERROR_STATE for these caches, and those of this
 * header for caches of one sequence; kv_cache_set_allocator, kv_cache_memory_bytes, kv_cache_kind,
 * kv_cache_is_lossy and kv_cache_free take both. Every function here answers GEN_ERROR_INVALID_ARGUMENT if the
 * cache is NULL, GEN_ERROR_BUSY if it is in use, and GEN_ERROR_STATE for a cache of one sequence, one that went
 * into a wrapper, and after kv_cache_close. On any failure nothing has changed unless said otherwise.
 */
#ifndef GENERATE_KV_CACHE_BATCH_H
#define GENERATE_KV_CACHE_BATCH_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As the end of a range of positions: everything from its begin on. */
#define KV_CACHE_TO_THE_END INT32_MAX

/**
 * Rotates keys whose positions were shifted: row i by offsets[i] positions; 0 leaves a row as it
 * is. Called by kv_cache_get_masked, on its thread; the cache returns GEN_ERROR_BUSY inside it. An
 * exception fails that call with GEN_ERROR_INTERNAL.
 *
 * @param layer    the layer as kv_cache_set_layer named it.
 * @param keys     [k_dim, kv_heads, n] float32, changed in place.
 * @param offsets  [n].
 * @return GEN_OK, or a negative status that the reading call then returns.
 */
typedef gen_status (*kv_cache_shift_fn)(void *user, int32_t layer, float *keys, int32_t k_dim,
                                        int32_t kv_heads, int32_t n, const int32_t *offsets);

/**
 * Makes a cache whose tokens see all earlier positions of their sequence.
 *
 * @param out  receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_causal_new(kv_cache **out, gen_error *error);

/**
 * Makes a cache whose tokens see `window` earlier positions and themselves, and which drops older ones.
 *
 * @param window  1 and up.
 * @param out     receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if window is below 1 or out NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_swa_new(int32_t window, kv_cache **out, gen_error *error);

/**
 * As kv_cache_swa_new, but keeps positions up to `memory` back, so that a sequence can be rolled
 * back and continued.
 *
 * @param window  1 and up.
 * @param memory  at least window.
 * @param out     receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if a number is wrong or out NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_swa_mem_new(int32_t window, int32_t memory, kv_cache **out,
                                        gen_error *error);

/**
 * Makes a cache whose tokens see only earlier positions of the same chunk: those with the same p /
 * chunk.
 *
 * @param chunk  positions of a chunk, 1 and up.
 * @param out    receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if chunk is below 1 or out NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_chunked_new(int32_t chunk, kv_cache **out, gen_error *error);

/**
 * Makes a cache for cross attention to the output of an encoder, such as images. It stores one item
 * per multimodal token of kv_cache_start_forward: in such a pass, the i-th kv_cache_put of a layer
 * is the item of the i-th of these tokens, with any number of rows. The items of a sequence have
 * the same heads in a layer; sequences that differ in that must be read in separate passes.
 * kv_cache_get_masked returns the items of the batch's sequences one after another; there is a mask
 * only if a token must not see some of them, because they belong to a later position or another
 * sequence. A copied prefix shares its items. The capacity of kv_cache_init has no effect here, and
 * memory is allocated per item.
 *
 * @param out  receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_encoder_new(kv_cache **out, gen_error *error);

/**
 * Combines several caches, one for each type of layer, so that they are driven together: start,
 * copy, remove, resume and close apply to all of them, and succeed in all or in none; put, get and
 * except-lists apply to the one that kv_cache_set_layer_type chose. For a wrapper inside a wrapper
 * that is its first cache.
 *
 * @param caches    [n] different caches of this header, not initialised. The wrapper takes them over: their
 *                  handles must still be freed, and can do nothing else.
 * @param n_caches  1 and up; the index is the layer type.
 * @param out       receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if n_caches is 0, a cache NULL or given twice, or caches or out NULL;
 *         GEN_ERROR_BUSY if a cache is in use;
 *         GEN_ERROR_STATE if a cache is of one sequence, initialised, closed, or in a wrapper;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_wrapper_new(kv_cache *const *caches, size_t n_caches, kv_cache **out,
                                        gen_error *error);

/**
 * Sets the form of the output of kv_cache_get_masked. Before kv_cache_init, at most once; a wrapper
 * applies it to those of its caches that were not configured themselves.
 *
 * @param padding     histories begin and end at multiples of this, 1 and up; 0 means 1. An encoder has no padding.
 * @param permuted_v  not 0: values are [n, v_dim, kv_heads].
 * @param mask_dtype  "fp32" or "fp16"; NULL means "fp32", the default.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if padding is below 0 or mask_dtype unknown;
 *         GEN_ERROR_UNSUPPORTED for an encoder with a padding above 1;
 *         GEN_ERROR_STATE after a first call, kv_cache_init or kv_cache_close.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_config(kv_cache *cache, int32_t padding, int32_t permuted_v,
                                       const char *mask_dtype, gen_error *error);

/**
 * Sets the function that rotates keys to shifted positions, without which kv_cache_remove cannot
 * close gaps. Keys are stored as they were put, with the sum of their shifts, and rotated when they
 * are read: however often they are shifted, they are rounded only once.
 *
 * @param shift  must work until the cache is freed or another is set.
 * @param user   passed to it.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if shift is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_shift(kv_cache *cache, kv_cache_shift_fn shift, void *user,
                                      gen_error *error);

/**
 * Sets the maximum number of entries of one sequence, so that it cannot take the room of all
 * others. A sequence that already holds more keeps them, but gets no further ones. Items of an
 * encoder are not counted.
 *
 * @param entries  0 for no quota.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if entries is below 0.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_quota(kv_cache *cache, int32_t entries, gen_error *error);

/**
 * Sets the size of a cache, once. Without a window there are max_sequences * capacity cells; with
 * one there are max_sequences * memory + max_batch. Any sequence may use any cell. With several
 * sequences, the memory is at least window + 1, and a memory as large as capacity is no limit.
 *
 * @param dtype          type of the stored rows: "fp16", "fp32", "q8_0" or "q4_0". NULL means "fp16" here, unlike in
 *                       kv_cache_tensor_new, where it means "fp32". The last two store blocks of 32 elements of a row
 *                       with a binary16 scale, and refuse elements that are not finite.
 * @param max_sequences  1 and up.
 * @param capacity       entries per sequence, 1 and up.
 * @param max_batch      tokens per pass, 1 and up.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if dtype is unknown, a number is below 1, or there would be more than 2^31 - 1 cells;
 *         GEN_ERROR_STATE after a first call;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    allocates a few bytes per cell; a layer's rows are allocated, and zeroed, by its first put.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_init(kv_cache *cache, const char *dtype, int32_t max_sequences,
                                 int32_t capacity, int32_t max_batch, gen_error *error);

/**
 * Chooses the layer for put and get; 0 at the start.
 *
 * @param layer  in [0, 65536).
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_STATE before kv_cache_init.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_layer(kv_cache *cache, int32_t layer, gen_error *error);

/**
 * Chooses the cache of a wrapper for put, get and except-lists; kv_cache_start_forward resets it to
 * 0.
 *
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_UNSUPPORTED if the cache is no wrapper.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_layer_type(kv_cache *cache, int32_t type, gen_error *error);

/**
 * Begins a pass: assigns a cell to each token, and drops positions that windows have left behind.
 * From now on the tokens belong to their sequences; if the pass is abandoned, kv_cache_remove
 * removes them.
 *
 * @param positions     [n] positions in their sequences, 0 to INT32_MAX - 1.
 * @param seqs          [n] numbers of sequences, 0 and up; a new number begins a sequence. Both arrays have n elements
 *                      of one type: swapping them goes unnoticed if all numbers are in range and at most max_sequences
 *                      of them differ.
 * @param n             tokens, 1 to max_batch.
 * @param reserve       not 0: a dry run for the largest possible history, to allocate memory and learn sizes; put then
 *                      stores nothing, get returns undefined content, and no sequence changes.
 * @param multimodal    [n_multimodal] indices of tokens that stand for items of an encoder; may be NULL if none.
 * @param n_multimodal  number of these.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if positions or seqs is NULL, n is outside its range, or a number negative;
 *         GEN_ERROR_OUT_OF_RANGE if an index is no token;
 *         GEN_ERROR_CACHE_FULL if there are too few cells, more than max_sequences sequences, or a quota is exceeded;
 *         GEN_ERROR_STATE before kv_cache_init;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(n log n + sequences + dropped).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_start_forward(kv_cache *cache, const int32_t *positions,
                                          const int32_t *seqs, size_t n, int32_t reserve,
                                          const int32_t *multimodal, size_t n_multimodal,
                                          gen_error *error);

/**
 * Stores this pass's keys and values in the chosen layer.
 *
 * @param k         [k_dim, k_heads, n] float32. Copied.
 * @param v         [v_dim, v_heads, n] float32. Copied.
 * @param k_heads   must be the layer's after its first put, as must the next three.
 * @param v_heads   usually k_heads.
 * @param n         tokens of the pass; for an encoder the rows of an item, 1 and up.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if k or v is NULL, a shape is invalid or not the layer's, or an element cannot
 *         be stored because it is not finite;
 *         GEN_ERROR_STATE outside a pass, or if an encoder's pass has no item left;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(elements); the first put of a layer allocates its memory.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_put(kv_cache *cache, const float *k, int32_t k_heads, int32_t k_dim,
                                const float *v, int32_t v_heads, int32_t v_dim, int32_t n,
                                gen_error *error);

/**
 * Copies what the tokens of this pass may see in the chosen layer: all cells between the first and
 * the last of them, and a mask that is 0 where a token may see a cell and -infinity elsewhere. Rows
 * that no token sees have undefined content.
 *
 * @param k              [k_capacity] floats, or NULL to skip the keys.
 * @param v              [v_capacity] floats, or NULL.
 * @param mask           [mask_capacity] elements, float or binary16 by kv_cache_set_config, or NULL.
 * @param k_shape        receives k_dim, k_heads, length; may be NULL.
 * @param v_shape        receives v_dim, v_heads, length, or length, v_dim, v_heads permuted; may be NULL.
 * @param mask_shape     receives length, n; 0, 0 if nothing is hidden (encoders only); may be NULL.
 * @return GEN_OK; an encoder without items gives shapes of 0;
 *         GEN_ERROR_INVALID_ARGUMENT if an encoder's pass reads sequences whose items have different heads;
 *         GEN_ERROR_OUT_OF_RANGE if a buffer is too small; the shapes then have what is needed;
 *         GEN_ERROR_STATE outside a pass, or before the layer's first put;
 *         what the function of kv_cache_set_shift returned, and k is undefined;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the buffers are untouched, except k as stated.
 * Threads: one at a time per cache.
 * Cost:    O(elements); the mask is computed once per pass.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_get_masked(kv_cache *cache, float *k, size_t k_capacity, float *v,
                                       size_t v_capacity, void *mask, size_t mask_capacity,
                                       int32_t k_shape[3], int32_t v_shape[3],
                                       int32_t mask_shape[2], gen_error *error);

/**
 * Lets tokens of this pass also see later positions, as within an image; windows, chunks and
 * sequences still apply.
 *
 * @param except    [n_except] indices of tokens, replacing those set before; may be NULL if there are none.
 * @param n_except  number of these.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if except is NULL and n_except not 0;
 *         GEN_ERROR_OUT_OF_RANGE if an index is no token;
 *         GEN_ERROR_STATE outside a pass;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_causal(kv_cache *cache, const int32_t *except, size_t n_except,
                                       gen_error *error);

/**
 * Replaces a sequence by a prefix of another: it gets the other's entries before `length`, without
 * a copy of any data, and what it held is dropped. Copied to itself, a sequence keeps that prefix.
 * Ends the pass.
 *
 * @param src     sequence to copy from; if it holds nothing, dst becomes empty.
 * @param dst     sequence to copy to.
 * @param length  positions, 0 and up.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if a number is below 0;
 *         GEN_ERROR_CACHE_FULL if dst is new and there are max_sequences;
 *         GEN_ERROR_STATE before kv_cache_init;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(entries of both).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_copy_prefix(kv_cache *cache, int32_t src, int32_t dst, int32_t length,
                                        gen_error *error);

/**
 * Tells whether a sequence may continue with a token at a position, given its stored positions: 1
 * or 0. Whether these hold the right tokens is up to the caller. With a window, an empty sequence
 * may not, unless its memory holds all positions.
 *
 * @param can  receives 1 or 0.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if can is NULL; GEN_ERROR_STATE before kv_cache_init.
 * Threads: one at a time per cache.
 * Cost:    O(log sequences).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_can_resume(const kv_cache *cache, int32_t seq, int32_t position,
                                       int32_t *can, gen_error *error);

/**
 * Removes positions [begin, end) from a sequence; later positions move down to close the gap. Cells
 * that other sequences share are copied before they move. Ends the pass.
 *
 * @param begin  first position, 0 and up.
 * @param end    position after the last; KV_CACHE_TO_THE_END moves nothing, and with begin 0 cannot fail.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if begin is below 0 or end below begin;
 *         GEN_ERROR_UNSUPPORTED if positions must move and there is no kv_cache_set_shift, or the window of later
 *         positions would reach positions that were dropped: then remove from begin to the end, and evaluate again;
 *         GEN_ERROR_CACHE_FULL if there is no cell for a copy;
 *         GEN_ERROR_STATE before kv_cache_init;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(entries of the sequence), and the copies.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_remove(kv_cache *cache, int32_t seq, int32_t begin, int32_t end,
                                   gen_error *error);

/**
 * Moves entries from the last cells into the first free ones, which makes histories shorter. Masks
 * and results do not change; only cells do. Ends the pass.
 *
 * @param budget  maximum number of entries to move, 0 and up.
 * @param moved   receives the number of moved entries; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if budget is below 0;
 *         GEN_ERROR_STATE before kv_cache_init;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(entries * log moved), and a copy of each moved entry.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_compact(kv_cache *cache, int32_t budget, int32_t *moved,
                                    gen_error *error);

/**
 * Tells whether a sequence has items in an encoder cache, or in one of a wrapper: 1 or 0. They stay
 * from their put until kv_cache_remove removes their positions.
 *
 * @param cached  receives 1 or 0.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cached is NULL;
 *         GEN_ERROR_UNSUPPORTED if there is no encoder cache;
 *         GEN_ERROR_STATE before kv_cache_init.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_encoder_cached(const kv_cache *cache, int32_t seq, int32_t *cached,
                                           gen_error *error);

/**
 * Frees the memory. May be called again; every other function except kv_cache_free and the getters
 * then returns GEN_ERROR_STATE.
 *
 * @return GEN_OK; the failures common to all functions of this header, but a closed cache is fine.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_close(kv_cache *cache, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_BATCH_H */
