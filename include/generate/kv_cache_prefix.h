/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache_prefix: keys and values of prompt prefixes, kept for later prompts that begin alike. It
 * shares blocks of a pool by reference with the paged caches that wrote them and with those that
 * continue from them; nothing is copied. Usage: write a prompt into a paged cache and insert its
 * kv_cache_block_table; for the next prompt call match, pass the blocks found to
 * kv_cache_inject_blocks, and compute the rest. Generators do this themselves, see
 * gen_options_set_prefix_cache. Shareable: any thread may call, at the same time. Read first:
 * kv_cache_pool.h.
 */
#ifndef GENERATE_KV_CACHE_PREFIX_H
#define GENERATE_KV_CACHE_PREFIX_H

#include "base.h"
#include "kv_cache_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A tree of token sequences over blocks of a pool. */
typedef struct kv_cache_prefix kv_cache_prefix;

/**
 * Makes an empty prefix cache. It holds one reference to each of its blocks. When the pool has no
 * free block left, blocks that nobody else holds are released, least recently used first.
 *
 * @param capacity  maximum number of blocks to keep, 1 and up.
 * @param pool      the pool of the blocks; kept alive.
 * @param out       receives the cache; free it with kv_cache_prefix_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if capacity is below 1, or pool or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_prefix_new(int32_t capacity, const kv_cache_pool *pool, kv_cache_prefix **out,
                                       gen_error *error);

/**
 * Frees the cache and drops its references; NULL is fine.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void kv_cache_prefix_free(kv_cache_prefix *prefix);

/**
 * Keeps the blocks of a sequence by adding a reference to each: the caller keeps its own. From then
 * on a block must be copied before it is written, as a paged cache does. Blocks of a prefix that is
 * already cached are not added again, but count as used. Beyond the capacity the least recently
 * used blocks are evicted, from the ends of sequences; blocks for which there is still no room are
 * not kept.
 *
 * @param domain    what keys and values depend on besides tokens, as a number chosen by the caller: model, adapter,
 *                  format. Sequences of different domains share nothing. 0 if there is only one.
 * @param tokens    [n_tokens]; NULL for none.
 * @param n_tokens  0 does nothing.
 * @param blocks    [n_blocks] of the pool; block i holds tokens [i * block_size, (i + 1) * block_size).
 * @param n_blocks  at least n_tokens / block_size, rounded up; further ones are ignored. 0 does nothing.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if prefix is NULL, or tokens or blocks is NULL with a number above 0; if there are
 *         too few blocks; or if a block has fewer written positions than the tokens need;
 *         GEN_ERROR_STATE if a block is free or not one of the pool's;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure nothing has changed.
 * Threads: any.
 * Cost:    O(tokens), and a binary search for each block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_prefix_insert(const kv_cache_prefix *prefix, uint64_t domain, const int32_t *tokens,
                                          size_t n_tokens, kv_cache_block *const *blocks, size_t n_blocks,
                                          gen_error *error);

/**
 * Finds the longest cached prefix of a sequence, counted in tokens, and lends its blocks.
 *
 * @param domain    as kv_cache_prefix_insert.
 * @param tokens    [n_tokens]; NULL for none. Omit the last token if its logits must be computed.
 * @param blocks    [capacity] receives the blocks with a reference to each, which kv_cache_inject_blocks takes over or
 *                  kv_cache_pool_free_block drops; NULL to ask for the numbers only. In the last block only the positions
 *                  before *matched belong to this sequence.
 * @param capacity  of blocks; n_tokens / block_size rounded up is always enough.
 * @param n_blocks  receives the number of blocks: *matched / block_size, rounded up.
 * @param matched   receives the number of tokens found; 0 if none.
 * @return GEN_OK, also if nothing is found;
 *         GEN_ERROR_INVALID_ARGUMENT if prefix, n_blocks or matched is NULL, or tokens is NULL with n_tokens above 0;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n_blocks is then the required capacity;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure no reference is given.
 * Threads: any.
 * Cost:    O(tokens), and a binary search for each block.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_prefix_match(const kv_cache_prefix *prefix, uint64_t domain, const int32_t *tokens,
                                         size_t n_tokens, kv_cache_block **blocks, size_t capacity, size_t *n_blocks,
                                         size_t *matched, gen_error *error);

/**
 * Number of cached blocks; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_prefix_size(const kv_cache_prefix *prefix);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_PREFIX_H */
