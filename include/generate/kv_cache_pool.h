/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paged caches: the keys and values of sequences are stored in equal blocks of a shared pool, so
 * that memory is allocated as positions are added, forks share their common part, and a prefix can
 * be put into a new cache without a copy. A block has a reference count. A cache holds one
 * reference to each of its blocks, drops it when it is truncated, reset or freed, and copies a
 * block before writing if others hold it, too. Everything else that works on a kv_cache works on a
 * paged one. Read next: kv_cache.h.
 */
#ifndef GENERATE_KV_CACHE_POOL_H
#define GENERATE_KV_CACHE_POOL_H

#include "base.h"
#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Blocks for paged caches. Shareable; caches keep what they use alive. */
typedef struct kv_cache_pool kv_cache_pool;
/** One block of a pool. Borrowed from it: its address stays valid, and the same, as long as the pool lives. */
typedef struct kv_cache_block kv_cache_block;

/**
 * Makes a pool. A block holds block_size positions of all layers; the pool has as many as fit into
 * max_memory_mb, each of 2 * layers * block_size * row_dim elements.
 *
 * @param layers         layers that a block covers, 1 and up.
 * @param block_size     positions in a block, 1 and up; 16 is a good size.
 * @param row_dim        elements of one key, or one value, at one position of one layer: batch * dim of the updates,
 *                       that is kv heads * head dim; 1 and up.
 * @param max_memory_mb  budget in units of 2^20 bytes, 1 and up.
 * @param dtype          "fp32", or "fp16": binary16 as kv_cache_fp16_new stores it; there is no default.
 * @param out            receives the pool; free it with kv_cache_pool_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if a number is below 1, dtype unknown, the budget below one block, or
 *         dtype or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    memory for blocks is allocated about a megabyte at a time, when first needed; it stays with the pool.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_new(int32_t layers, int32_t block_size, int32_t row_dim,
                                     int32_t max_memory_mb, const char *dtype, kv_cache_pool **out,
                                     gen_error *error);

/**
 * Takes the blocks' memory from the caller's allocator; NULL restores the system's.
 *
 * @param allocator  table, copied; its functions must work until the pool and its caches are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if pool is NULL, struct_size below that of version 0.1, or a function missing;
 *         GEN_ERROR_STATE once a block has been allocated.
 *         On any failure the pool is unchanged.
 * Threads: one, before the pool is shared.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_set_allocator(kv_cache_pool *pool, const gen_allocator *allocator,
                                               gen_error *error);

/**
 * Stores the blocks in a device's memory, from the caller's allocator;
 * kv_cache_pool_set_allocator(pool, NULL) restores host memory. Caches over the pool work as
 * before; each write and read is a copy through the table for every block, and states saved from
 * either memory load into the other. kv_cache_block_k and kv_cache_block_v return addresses on the
 * device, for the caller's own kernels.
 *
 * @param allocator  table, copied; its functions must work until the pool and its caches are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if pool or allocator is NULL, struct_size below that of version 0.1, or a function
 *         missing;
 *         GEN_ERROR_STATE once a block has been allocated.
 *         On any failure the pool is unchanged. Later calls on its caches can also fail as the allocator does, and leave
 *         the cache as it was.
 * Threads: one, before the pool is shared.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_set_gpu_allocator(kv_cache_pool *pool, const gen_gpu_allocator *allocator,
                                                   gen_error *error);

/**
 * Allocates a block with one reference, the caller's. Its content is undefined.
 *
 * @param out  receives the block; pass it to kv_cache_pool_free_block or to kv_cache_inject_blocks in the end.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if pool or out is NULL;
 *         GEN_ERROR_POOL_EXHAUSTED if no block is free;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_alloc(const kv_cache_pool *pool, kv_cache_block **out,
                                       gen_error *error);

/**
 * Adds a reference to a block, for example to put a block of one cache into another.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if pool is NULL;
 *         GEN_ERROR_STATE if block is free, not one of this pool's, or NULL.
 *         On any failure nothing has changed.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_retain_block(const kv_cache_pool *pool, kv_cache_block *block,
                                              gen_error *error);

/**
 * Drops a reference to a block. Without references it is free, and is the next one allocated.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if pool is NULL;
 *         GEN_ERROR_STATE if block is free already, not one of this pool's, or NULL.
 *         On any failure nothing has changed.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_pool_free_block(const kv_cache_pool *pool, kv_cache_block *block,
                                            gen_error *error);

/**
 * Number of blocks in total; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t kv_cache_pool_cap(const kv_cache_pool *pool);

/**
 * Number of free blocks; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t kv_cache_pool_available(const kv_cache_pool *pool);

/**
 * Positions per block; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_pool_block_size(const kv_cache_pool *pool);

/**
 * Fraction of the positions of allocated blocks that are not written; 0 for NULL, or if none is
 * allocated.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API double kv_cache_pool_fragmentation(const kv_cache_pool *pool);

/**
 * Bytes allocated; 0 for NULL. kv_cache_memory_bytes of a cache counts all blocks that it holds,
 * including shared ones, so the sum over caches may exceed the pool.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t kv_cache_pool_resident_bytes(const kv_cache_pool *pool);

/**
 * Releases the pool; its last cache frees it. NULL is fine. Blocks that the caller still holds
 * become invalid when it is freed.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void kv_cache_pool_free(kv_cache_pool *pool);

/**
 * The keys of a block: [layers, block_size, row_dim] of the pool's dtype, where a row has its lanes
 * one after another. The only holder of a block may write to it. NULL for NULL and for a block of a
 * model's cache, whose rows are stored in tiles for attention. On a device this is a device
 * address.
 *
 * @return borrowed; the caller, or the cache in question, must hold a reference.
 * Threads: any; access to the bytes is up to the holders.
 * Since:   0.1
 */
GEN_API void *kv_cache_block_k(const kv_cache_block *block);

/**
 * The values of a block, as kv_cache_block_k.
 *
 * @return borrowed; the caller, or the cache in question, must hold a reference.
 * Threads: any; access to the bytes is up to the holders.
 * Since:   0.1
 */
GEN_API void *kv_cache_block_v(const kv_cache_block *block);

/**
 * Number of positions of a block that caches have written; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_block_used(const kv_cache_block *block);

/**
 * Makes an empty cache for one sequence over a pool. In its updates batch * dim must equal the
 * pool's row_dim, and all layers must have the same batch and dim. Updates can also fail with
 * GEN_ERROR_POOL_EXHAUSTED, which leaves the cache as it was. A clone shares all blocks. The cache
 * has no view; kv_cache_block_table shows where its data is.
 *
 * @param layers  in [1, the pool's layers].
 * @param out     receives the cache; free it with kv_cache_free, which releases its blocks.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range, or pool or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_paged_new(const kv_cache_pool *pool, int32_t layers, kv_cache **out,
                                      gen_error *error);

/**
 * Copies the list of a paged cache's blocks; block i holds positions [i * block_size, (i + 1) *
 * block_size). Where a generator's model has layers with windows (the setting "window_rewind"), as
 * many blocks as there are groups of layers follow each other for each stretch of block_size
 * positions, NULL where no token will see them any more. It also works for a session's cache, or one of kv_cache_generator_new, if the
 * generator has a pool, and shows which blocks sessions share. A session that lost its blocks to
 * others (gen_options_set_paged_kv) has none until it continues.
 *
 * @param blocks    [capacity], or NULL to ask for the number. The blocks are borrowed until the cache changes;
 *                  kv_cache_pool_retain_block keeps one longer.
 * @param capacity  of blocks.
 * @param n         receives the number of blocks.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or n is NULL, or the cache is not paged;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is too small; *n is then the required capacity.
 * Threads: one at a time per cache.
 * Cost:    O(blocks).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_block_table(const kv_cache *cache, kv_cache_block **blocks,
                                        size_t capacity, size_t *n, gen_error *error);

/**
 * Fills an empty paged cache with blocks that are already written, and sets the length of every
 * layer to `positions`.
 *
 * @param blocks     [n_blocks] different blocks of the cache's pool. The cache takes over one reference to each.
 * @param n_blocks   at least positions / block_size, rounded up.
 * @param positions  1 and up.
 * @param batch      lanes of a row.
 * @param dim        elements of a lane; batch * dim must equal the pool's row_dim.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or blocks is NULL, the cache is not paged, a number is wrong or a
 *         block given twice;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE if the cache is not empty, or a block is free or not one of the pool's;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the cache is unchanged and the references stay with the caller.
 * Threads: one at a time per cache.
 * Cost:    O(blocks).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_inject_blocks(kv_cache *cache, kv_cache_block *const *blocks,
                                          size_t n_blocks, int32_t positions, int32_t batch,
                                          int32_t dim, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_POOL_H */
