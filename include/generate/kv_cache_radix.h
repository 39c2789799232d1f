/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache_radix: an index from token sequences to block ids, for programs that manage blocks of
 * keys and values themselves and need to know which of them hold the prefix of a prompt, and which
 * to evict next. It holds no keys or values; kv_cache_prefix.h does that for the blocks of a pool.
 *
 * A sequence is split into blocks of block_size tokens; the remainder at its end is a block of its
 * own, which matches only a sequence that ends with it. Each block has an id in [0, max_blocks),
 * unique among current blocks; freed ids are reused. When the index is full, the least recently
 * used leaf is evicted, a block without successors. Blocks are found by the FNV-1a hash of their
 * tokens and then compared token by token. Shareable: any thread may call, at the same time.
 */
#ifndef GENERATE_KV_CACHE_RADIX_H
#define GENERATE_KV_CACHE_RADIX_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The index. */
typedef struct kv_cache_radix kv_cache_radix;

/**
 * Receives each freed id before it is reused, on the thread whose call frees it. The callback may
 * call kv_cache_radix_size; other calls on the index return GEN_ERROR_BUSY. Exceptions are dropped.
 */
typedef void (*kv_cache_radix_evict_callback)(void *user, int32_t id);

/**
 * Makes an empty index.
 *
 * @param block_size  tokens per block, 1 and up.
 * @param max_blocks  maximum number of blocks, 1 and up.
 * @param out         receives the index; free it with kv_cache_radix_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if a number is below 1 or out is NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    memory is allocated as blocks are added.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_new(int32_t block_size, int32_t max_blocks, kv_cache_radix **out,
                                      gen_error *error);

/**
 * Frees the index; NULL is fine. The callback is not called.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void kv_cache_radix_free(kv_cache_radix *radix);

/**
 * Adds the missing blocks of a sequence, and marks all of its blocks as used. If there is no room,
 * least recently used leaves are evicted, except pinned ones and those of this sequence. Blocks for
 * which there is still no room are left out; *n shows how many fit.
 *
 * @param tokens    [n_tokens]; NULL for none. Any values.
 * @param n_tokens  0 adds nothing.
 * @param ids       [capacity] receives the ids of the sequence's blocks, in order; NULL if they are not wanted.
 * @param capacity  of ids.
 * @param n         receives the number of the sequence's blocks in the index: n_tokens / block_size rounded up, unless
 *                  there was no room for all; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens is NULL with n_tokens above 0;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n is then the required capacity;
 *         GEN_ERROR_BUSY in the callback;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the index is unchanged.
 * Threads: any.
 * Cost:    O(tokens), and for each added or evicted block a binary search among the successors of the same block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_insert(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * Finds the longest indexed prefix of a sequence, in whole blocks, and marks it as used. It counts
 * as a hit, or as a miss if nothing is found.
 *
 * @param tokens    [n_tokens]; NULL for none.
 * @param n_tokens  0 is a miss.
 * @param matched   receives the number of tokens found.
 * @param ids       [capacity] receives the ids of their blocks, in order; NULL if they are not wanted.
 * @param capacity  of ids.
 * @param n         receives the number of these blocks; may be NULL.
 * @return GEN_OK, also for a miss;
 *         GEN_ERROR_INVALID_ARGUMENT if radix or matched is NULL, or tokens is NULL with n_tokens above 0;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n is then the required capacity;
 *         GEN_ERROR_BUSY in the callback.
 *         On any failure the index and its counts are unchanged.
 * Threads: any; another call may free these ids unless they are pinned.
 * Cost:    O(tokens), and a binary search for each block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_match(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                        size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * As kv_cache_radix_match, but the blocks found stay until kv_cache_radix_unpin has been called as
 * often. Counts as neither hit nor miss.
 *
 * @return as kv_cache_radix_match.
 * Threads: any.
 * Cost:    as kv_cache_radix_match.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_pin(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                      size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * Undoes one kv_cache_radix_pin, and marks its blocks as used.
 *
 * @param tokens    [n_tokens] the tokens that were found: the first *matched.
 * @param n_tokens  0 does nothing.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens is NULL with n_tokens above 0;
 *         GEN_ERROR_STATE if these tokens are not pinned;
 *         GEN_ERROR_BUSY in the callback.
 *         On any failure the index is unchanged.
 * Threads: any.
 * Cost:    as kv_cache_radix_match.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_unpin(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                        gen_error *error);

/**
 * Removes the least recently used leaf that is not pinned; counts as an eviction.
 *
 * @param id  receives its id, -1 if there is none; may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any.
 * Cost:    a binary search.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_evict(const kv_cache_radix *radix, int32_t *id, gen_error *error);

/**
 * Removes all sequences that begin with these tokens: every block that only they use. Does not
 * count as evictions.
 *
 * @param tokens    [n_tokens]; NULL for none.
 * @param n_tokens  0 removes everything.
 * @param removed   receives the number of blocks removed; may be NULL.
 * @return GEN_OK, also if there is none;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens is NULL with n_tokens above 0;
 *         GEN_ERROR_BUSY if one of the blocks is pinned, and in the callback.
 *         On any failure the index is unchanged.
 * Threads: any.
 * Cost:    as kv_cache_radix_match, and a binary search for each removed block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_remove(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         size_t *removed, gen_error *error);

/**
 * Number of blocks in the index; 0 for NULL.
 *
 * Threads: any, in the callback too.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_radix_size(const kv_cache_radix *radix);

/**
 * Numbers of matches that found something (hits), of those that did not (misses), and of evicted
 * leaves, to make room or by kv_cache_radix_evict; all since the index was made, and consistent
 * with one another.
 *
 * @param hits       each may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_stats(const kv_cache_radix *radix, uint64_t *hits, uint64_t *misses,
                                        uint64_t *evictions, gen_error *error);

/**
 * Sets the callback for freed ids: evicted or removed ones.
 *
 * @param callback  NULL for none.
 * @param user      passed to it.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any; a call of the previous callback that is running on another thread has ended when this returns.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_set_evict_callback(const kv_cache_radix *radix,
                                                     kv_cache_radix_evict_callback callback, void *user,
                                                     gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_RADIX_H */
