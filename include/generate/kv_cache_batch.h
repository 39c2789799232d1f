/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of many sequences: one kv_cache that holds the keys and values of all sequences of a server, written
 * and read a batch of tokens at a time. Each of its cells holds one position of one layer's keys and values, and
 * may belong to several sequences that share a prefix. The order of calls:
 *
 *   kv_cache_causal_new, …   how far tokens see back; kv_cache_set_config and kv_cache_set_allocator if need be
 *   kv_cache_init            how large it is
 *   kv_cache_start_forward   for each pass: which tokens of which sequences
 *   kv_cache_set_layer, kv_cache_put, kv_cache_get_masked   for each layer of the pass
 *   kv_cache_remove, kv_cache_copy_prefix, kv_cache_compact between passes
 *
 * Data is float32, fastest dimension first in what comes out: keys [k_dim, kv_heads, n] means that element d of
 * head h of token i is k[(i * kv_heads + h) * k_dim + d].
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

/** As the end of a range of positions: all from its begin on. */
#define KV_CACHE_TO_THE_END INT32_MAX

/**
 * Turns keys whose positions were shifted: row i by offsets[i] positions, for rotary embeddings a rotation by
 * that many; 0 leaves a row as it is. Called by kv_cache_get_masked, on its thread; the cache is GEN_ERROR_BUSY in it. An
 * exception fails that call with GEN_ERROR_INTERNAL.
 *
 * @param layer    the layer as kv_cache_set_layer named it.
 * @param keys     [k_dim, kv_heads, n] float32, to be changed in place.
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
 * As kv_cache_swa_new, but positions up to `memory` back are kept, so that a sequence can go back and on again.
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
 * Makes a cache whose tokens see earlier positions p of the same chunk only: p / chunk is their own.
 *
 * @param chunk  positions of a chunk, 1 and up.
 * @param out    receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if chunk is below 1 or out NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_chunked_new(int32_t chunk, kv_cache **out, gen_error *error);

/**
 * Makes a cache for what an encoder made of other input, as images, for cross attention. It keeps an item for
 * each multimodal token of kv_cache_start_forward: in such a pass, the i-th kv_cache_put of a layer is the item
 * of the i-th of these tokens, with any number of rows. The items of a sequence have the same heads in a layer;
 * sequences that differ in that are read in passes of their own. kv_cache_get_masked gives the items of the batch's
 * sequences one after another; a mask comes only if a token must not see some of them, for they belong to a
 * later position or another sequence. A copied prefix shares its items. The capacity of kv_cache_init says
 * nothing here, and items take their memory one by one.
 *
 * @param out  receives the cache; free it with kv_cache_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_encoder_new(kv_cache **out, gen_error *error);

/**
 * Makes one cache of several, one for each type of layer, that are driven together: start, copy, remove, resume
 * and close are for all of them, and happen in all or in none; put, get and except-lists are for the one that
 * kv_cache_set_layer_type chose. Of a wrapper in a wrapper that is its first cache.
 *
 * @param caches    [n] different caches of this header, not initialised. They pass into the wrapper: their
 *                  handles are still to be freed, and good for nothing else.
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
 * Says how kv_cache_get_masked hands things out. Before kv_cache_init, at most once; a wrapper passes it to those
 * of its caches that were not told themselves.
 *
 * @param padding     histories begin and end at multiples of this, 1 and up; 0 is 1. An encoder pads nothing.
 * @param permuted_v  not 0: values come as [n, v_dim, kv_heads].
 * @param mask_dtype  "fp32" or "fp16"; NULL stands for "fp32", the default of a cache that is told nothing.
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
 * Gives the function that turns keys of shifted positions, without which kv_cache_remove closes no gaps. Keys are
 * kept as they were put, with the sum of their shifts, and turned once when they are read: however often they
 * are shifted, they are rounded once.
 *
 * @param shift  must work until the cache is freed or another is given.
 * @param user   handed to it.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if shift is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_shift(kv_cache *cache, kv_cache_shift_fn shift, void *user,
                                      gen_error *error);

/**
 * Most entries that one sequence may hold, so that it cannot take the room of all others. A sequence that holds
 * more keeps them, but takes no further ones. Items of an encoder are no entries.
 *
 * @param entries  0 for no quota.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if entries is below 0.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_quota(kv_cache *cache, int32_t entries, gen_error *error);

/**
 * Sets the size of a cache, once. Without a window there are max_sequences * capacity cells, with one
 * max_sequences * memory + max_batch; any sequence may take any of them. With several sequences a memory is at
 * least the window and one, and one as large as capacity is no limit.
 *
 * @param dtype          how rows are kept: "fp16", "fp32", "q8_0" or "q4_0"; NULL stands for "fp16" here, not for
 *                       "fp32" as in kv_cache_tensor_new. The last two keep blocks of 32 elements of a row with a
 *                       binary16 scale, and refuse what is not finite.
 * @param max_sequences  1 and up.
 * @param capacity       entries of a sequence, 1 and up.
 * @param max_batch      tokens of a pass, 1 and up.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if dtype is unknown, a number below 1, or the cells more than 2^31 - 1;
 *         GEN_ERROR_STATE after a first call;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    takes a few bytes for each cell; a layer's rows are taken, and zeroed, by its first put.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_init(kv_cache *cache, const char *dtype, int32_t max_sequences,
                                 int32_t capacity, int32_t max_batch, gen_error *error);

/**
 * Chooses the layer that put and get are about; 0 at the start.
 *
 * @param layer  in [0, 65536).
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_STATE before kv_cache_init.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_layer(kv_cache *cache, int32_t layer, gen_error *error);

/**
 * Chooses the cache of a wrapper that put, get and except-lists are about; kv_cache_start_forward goes back to 0.
 *
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_UNSUPPORTED if the cache is no wrapper.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_layer_type(kv_cache *cache, int32_t type, gen_error *error);

/**
 * Begins a pass: takes a cell for each token, and drops what windows have left behind. From here on the tokens
 * belong to their sequences; kv_cache_remove takes them back if the pass is given up.
 *
 * @param positions     [n] positions in their sequences, 0 to INT32_MAX - 1.
 * @param seqs          [n] numbers of sequences, 0 and up; a new number begins a sequence. Both arrays have n elements
 *                      of one type: given in the wrong order they are taken as they are wherever their numbers are
 *                      in range and no more than max_sequences of them differ.
 * @param n             tokens, 1 to max_batch.
 * @param reserve       not 0: for the largest history there can be, to have memory taken and sizes known; put
 *                      then stores nothing, get gives undefined content, and no sequence changes.
 * @param multimodal    [n_multimodal] indices of tokens that stand for items of an encoder; may be NULL if none.
 * @param n_multimodal  number of these.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if positions or seqs is NULL, n is outside its range, or a number negative;
 *         GEN_ERROR_OUT_OF_RANGE if an index is no token;
 *         GEN_ERROR_CACHE_FULL if cells are missing, a sequence beyond max_sequences or a quota passed;
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
 * @param k_heads   the layer's own after its first put, as the following three.
 * @param v_heads   usually k_heads.
 * @param n         tokens of the pass; for an encoder the rows of an item, 1 and up.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if k or v is NULL, a shape is none or not the layer's, or an element cannot
 *         be kept because it is not finite;
 *         GEN_ERROR_STATE outside a pass, or if an encoder's pass has no item left;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    O(elements); the first put of a layer takes its memory.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_put(kv_cache *cache, const float *k, int32_t k_heads, int32_t k_dim,
                                const float *v, int32_t v_heads, int32_t v_dim, int32_t n,
                                gen_error *error);

/**
 * Copies what the tokens of this pass may look at in the chosen layer: all cells between the first and the last
 * of them, and a mask that is 0 where a token may look and -infinity elsewhere. Rows that no token sees may hold
 * anything that was stored there.
 *
 * @param k              [k_capacity] floats, or NULL to leave the keys out.
 * @param v              [v_capacity] floats, or NULL.
 * @param mask           [mask_capacity] elements, float or binary16 by kv_cache_set_config, or NULL.
 * @param k_shape        receives k_dim, k_heads, length; may be NULL.
 * @param v_shape        receives v_dim, v_heads, length, or length, v_dim, v_heads permuted; may be NULL.
 * @param mask_shape     receives length, n; 0, 0 if nothing is hidden (encoders only); may be NULL.
 * @return GEN_OK; an encoder without items gives shapes of 0;
 *         GEN_ERROR_INVALID_ARGUMENT if an encoder's pass reads sequences whose items have different heads;
 *         GEN_ERROR_OUT_OF_RANGE if a buffer is too small; the shapes then tell what is needed;
 *         GEN_ERROR_STATE outside a pass, or before the layer's first put;
 *         what the function of kv_cache_set_shift returned, with k undefined;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the buffers are untouched, but for k as said.
 * Threads: one at a time per cache.
 * Cost:    O(elements); the mask is made once in a pass.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_get_masked(kv_cache *cache, float *k, size_t k_capacity, float *v,
                                       size_t v_capacity, void *mask, size_t mask_capacity,
                                       int32_t k_shape[3], int32_t v_shape[3],
                                       int32_t mask_shape[2], gen_error *error);

/**
 * Lets tokens of this pass see later positions too, as within an image; windows, chunks and sequences hold.
 *
 * @param except    [n_except] indices of tokens, instead of those given before; may be NULL if there are none.
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
 * Makes a sequence begin as another does: it becomes the other's entries before `length`, without a copy of any
 * data, and whatever it held is dropped. Copied to itself, a sequence keeps that prefix. Ends the pass.
 *
 * @param src     sequence to copy from; a number that holds nothing gives nothing.
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
 * Tells whether a sequence may go on with a token at a position, given what is held: 1 or 0. What the positions
 * hold is the caller's to know. With a window, a sequence that holds nothing may not.
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
 * Takes positions [begin, end) out of a sequence; those after them move down to close the gap. Cells that other
 * sequences share are copied first if they move. Ends the pass.
 *
 * @param begin  first position, 0 and up.
 * @param end    position after the last; KV_CACHE_TO_THE_END moves nothing, and with begin 0 cannot fail.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if begin is below 0 or end below begin;
 *         GEN_ERROR_UNSUPPORTED if positions must move and there is no kv_cache_set_shift, or the window of what
 *         follows would reach positions that were dropped: remove from begin to the end then, and evaluate again;
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
 * Moves entries from the last cells into the first free ones, so that histories become shorter. Masks and results
 * stay what they are; only cells change. Ends the pass.
 *
 * @param budget  most entries to move, 0 and up.
 * @param moved   receives how many were; may be NULL.
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
 * Tells whether a sequence has items in an encoder cache, or in one of a wrapper: 1 or 0. They are there from
 * their put until kv_cache_remove takes their positions away.
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
 * Gives the memory back. May be called again; every other function but kv_cache_free and the getters then answers
 * GEN_ERROR_STATE.
 *
 * @return GEN_OK; the failures that all functions of this header have, but closed caches are fine.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_close(kv_cache *cache, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_BATCH_H */
