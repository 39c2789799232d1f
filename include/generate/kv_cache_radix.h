/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache_radix: an index from token sequences to block ids, for programs that keep blocks of keys and values
 * themselves and want to know which of them hold the beginning of a prompt, and which to give up next. It holds
 * no keys or values; kv_cache_prefix.h does that for the blocks of a pool.
 *
 * A sequence is cut into blocks of block_size tokens; what remains at its end is a block of its own, which only a
 * sequence that ends with it matches. Each block has an id in [0, max_blocks), of no other block that is there;
 * an id that is free is given out again. When the index is full the least recently used leaf goes, a block that
 * no other follows. Blocks are found by the FNV-1a hash of their tokens and then compared token by token.
 * Shareable: any thread may call, at the same time.
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
 * Receives each id that is free again, before it is given out anew, on the thread whose call frees it. It may ask
 * kv_cache_radix_size; other calls on the index are answered with GEN_ERROR_BUSY. Exceptions are dropped.
 */
typedef void (*kv_cache_radix_evict_callback)(void *user, int32_t id);

/**
 * Makes an empty index.
 *
 * @param block_size  tokens in a block, 1 and up.
 * @param max_blocks  blocks that there may be, 1 and up.
 * @param out         receives the index; free it with kv_cache_radix_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if a number is below 1 or out is NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    memory comes with the blocks.
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
 * Adds the blocks of a sequence that are not there yet, and counts all of them as used. Where there is no room,
 * least recently used leaves go, but no pinned one and none of this sequence; what has no room even then is left
 * out, and *n tells so.
 *
 * @param tokens    [n_tokens]; NULL for none. Any values.
 * @param n_tokens  0 adds nothing.
 * @param ids       [capacity] receives the ids of the sequence's blocks, in order; NULL if they are not wanted.
 * @param capacity  of ids.
 * @param n         receives the number of blocks that are there, n_tokens / block_size rounded up unless there was
 *                  no room for all; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens with n_tokens above 0;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n is then what is needed;
 *         GEN_ERROR_BUSY in the callback;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the index is unchanged.
 * Threads: any.
 * Cost:    O(tokens), and a binary search among the blocks that follow the same one, for each block that comes or
 *          goes.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_insert(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * Finds the longest beginning of a sequence that is there, in whole blocks, and counts it as used. That is a hit, or a
 * miss if it has no token.
 *
 * @param tokens    [n_tokens]; NULL for none.
 * @param n_tokens  0 is a miss.
 * @param matched   receives the number of tokens found.
 * @param ids       [capacity] receives the ids of their blocks, in order; NULL if they are not wanted.
 * @param capacity  of ids.
 * @param n         receives the number of these blocks; may be NULL.
 * @return GEN_OK, also for a miss;
 *         GEN_ERROR_INVALID_ARGUMENT if radix or matched is NULL, or tokens with n_tokens above 0;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n is then what is needed;
 *         GEN_ERROR_BUSY in the callback.
 *         On any failure the index and its counts are unchanged.
 * Threads: any; another call may free these ids unless they are pinned.
 * Cost:    O(tokens), and a binary search for each block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_match(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                        size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * As kv_cache_radix_match, and what is found stays until kv_cache_radix_unpin has been called as often. Counts as
 * neither hit nor miss.
 *
 * @return as kv_cache_radix_match.
 * Threads: any.
 * Cost:    as kv_cache_radix_match.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_pin(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                      size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);

/**
 * Takes one kv_cache_radix_pin back, and counts what it held as used.
 *
 * @param tokens    [n_tokens] those that were found: the first *matched.
 * @param n_tokens  0 does nothing, as nothing was found.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens with n_tokens above 0;
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
 * Removes the least recently used leaf that is not pinned, which counts as an eviction.
 *
 * @param id  receives its id, -1 if there is none; may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any.
 * Cost:    a binary search.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_evict(const kv_cache_radix *radix, int32_t *id, gen_error *error);

/**
 * Removes all sequences that begin with these tokens: each block that only they use. Not counted as evictions.
 *
 * @param tokens    [n_tokens]; NULL for none.
 * @param n_tokens  0 removes everything.
 * @param removed   receives the number of blocks removed; may be NULL.
 * @return GEN_OK, also if there is none;
 *         GEN_ERROR_INVALID_ARGUMENT if radix is NULL, or tokens with n_tokens above 0;
 *         GEN_ERROR_BUSY if one of the blocks is pinned, and in the callback.
 *         On any failure the index is unchanged.
 * Threads: any.
 * Cost:    as kv_cache_radix_match, and a binary search for each block removed.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_remove(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         size_t *removed, gen_error *error);

/**
 * Blocks that are there; 0 for NULL.
 *
 * Threads: any, in the callback too.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_radix_size(const kv_cache_radix *radix);

/**
 * Matches that found something, those that did not, and leaves that went to make room or by kv_cache_radix_evict,
 * all since the index was made and at one moment.
 *
 * @param hits       each may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_stats(const kv_cache_radix *radix, uint64_t *hits, uint64_t *misses,
                                        uint64_t *evictions, gen_error *error);

/**
 * Sets who is told of each id that is free again: evicted or removed.
 *
 * @param callback  NULL for nobody.
 * @param user      given to it.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if radix is NULL; GEN_ERROR_BUSY in the callback.
 * Threads: any; a call of the one before may have just begun on another thread, and has ended when this returns.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_radix_set_evict_callback(const kv_cache_radix *radix,
                                                     kv_cache_radix_evict_callback callback, void *user,
                                                     gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_RADIX_H */
