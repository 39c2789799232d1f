// SPDX-License-Identifier: Apache-2.0
// kv_cache_pool.h of the C API. A kv_cache_block is a cache::Block by its address.
#include <generate/kv_cache_pool.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "api/c_allocator.h"
#include "api/c_gpu_allocator.h"
#include "api/kv_cache_handle.h"
#include "api/pool_handle.h"
#include "cache/element_type.h"
#include "cache/tensor/paged_store.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::PoolState;
using gen::api::with_cache;
using gen::cache::Block;
using gen::cache::PagedStore;
using gen::cache::TensorPool;

gen::Result<gen::DType> element_type(const char* dtype) {
  GEN_TRY(not_null(dtype, "dtype"));
  return gen::cache::find_element_type(dtype, TensorPool::kTypes, "a pool");
}

Block* to_block(kv_cache_block* block) { return reinterpret_cast<Block*>(block); }
kv_cache_block* from_block(Block* block) { return reinterpret_cast<kv_cache_block*>(block); }

/// Keys lie in the first half of a block, values in the second.
void* half_of(const kv_cache_block* block, size_t half) {
  if (block == nullptr) return nullptr;
  const auto& own = *reinterpret_cast<const Block*>(block);
  if (!own.pool().holds_tensors()) return nullptr;  // a session's: tiles
  const size_t offset = half * (own.pool().block_bytes() / 2);
  if (std::byte* const at = own.pool().memory().host(own.data()); at != nullptr) return at + offset;
  return reinterpret_cast<void*>(own.data().address() + offset);  // on a device
}

Status not_paged(const char* call, const kv_cache& cache) {
  return gen::api::other_family(Code::kInvalidArgument, call, "caches of kv_cache_paged_new",
                                cache);
}

gen::Result<std::span<Block* const>> blocks_of(const kv_cache& cache) {
  if (cache.store != nullptr) {
    const auto* const store = dynamic_cast<const PagedStore*>(&cache.store->bare());
    if (store != nullptr) return store->block_table();
  } else if (gen::cache::KvCache* const engine = cache.engine(); engine != nullptr) {
    if (const auto* const sharing = engine->sharing(); sharing != nullptr) return sharing->blocks();
  }
  return gen::api::other_family(Code::kInvalidArgument, "kv_cache_block_table", "paged caches",
                                cache);
}

}  // namespace

gen_status kv_cache_pool_new(int32_t layers, int32_t block_size, int32_t row_dim,
                             int32_t max_memory_mb, const char* dtype, kv_cache_pool** out,
                             gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const gen::DType type, element_type(dtype));
    auto state = std::make_shared<PoolState>();
    GEN_ASSIGN(state->pool, TensorPool::create({layers, block_size, row_dim, type}, max_memory_mb,
                                               gen::system_allocator()));
    auto handle = std::make_unique<kv_cache_pool>();
    handle->shared = gen::api::Shared<PoolState>(std::move(state));
    *out = handle.release();
    return {};
  });
}

gen_status kv_cache_pool_set_allocator(kv_cache_pool* pool, const gen_allocator* allocator,
                                       gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    std::shared_ptr<gen::Allocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_allocator(*allocator));
    }
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    const auto table = wrapped != nullptr ? wrapped->callbacks() : nullptr;
    gen::api::Shared<PoolState> shared(used.shared(), gen::api::joined({table}));
    GEN_TRY(used->pool->set_allocator(wrapped != nullptr ? *wrapped : gen::system_allocator()));
    used->allocator = std::move(wrapped);
    pool->shared = std::move(shared);
    return {};
  });
}

gen_status kv_cache_pool_set_gpu_allocator(kv_cache_pool* pool, const gen_gpu_allocator* allocator,
                                           gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_ASSIGN(auto memory, gen::api::wrap_gpu_allocator(allocator));
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    gen::api::Shared<PoolState> shared(used.shared(), gen::api::joined({memory->callbacks()}));
    GEN_TRY(used->pool->set_gpu_allocator(std::move(memory)));
    used->allocator = nullptr;
    pool->shared = std::move(shared);
    return {};
  });
}

gen_status kv_cache_pool_alloc(const kv_cache_pool* pool, kv_cache_block** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    GEN_ASSIGN(Block * block, used->blocks().allocate());
    *out = from_block(block);
    return {};
  });
}

gen_status kv_cache_pool_retain_block(const kv_cache_pool* pool, kv_cache_block* block,
                                      gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    return used->blocks().retain(to_block(block));
  });
}

gen_status kv_cache_pool_free_block(const kv_cache_pool* pool, kv_cache_block* block,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    return used->blocks().release(to_block(block));
  });
}

size_t kv_cache_pool_cap(const kv_cache_pool* pool) {
  return pool != nullptr ? pool->shared.peek().blocks().capacity() : 0;
}

size_t kv_cache_pool_available(const kv_cache_pool* pool) {
  return gen::api::usable(pool) ? pool->shared.peek().blocks().available() : 0;
}

int32_t kv_cache_pool_block_size(const kv_cache_pool* pool) {
  return pool != nullptr ? pool->shared.peek().blocks().block_size() : 0;
}

double kv_cache_pool_fragmentation(const kv_cache_pool* pool) {
  return gen::api::usable(pool) ? pool->shared.peek().blocks().fragmentation() : 0;
}

size_t kv_cache_pool_resident_bytes(const kv_cache_pool* pool) {
  return gen::api::usable(pool) ? pool->shared.peek().blocks().resident_bytes() : 0;
}

void kv_cache_pool_free(kv_cache_pool* pool) {
  if (pool != nullptr) gen::api::end_handle(pool, pool->shared.callbacks());
}

void* kv_cache_block_k(const kv_cache_block* block) { return half_of(block, 0); }

void* kv_cache_block_v(const kv_cache_block* block) { return half_of(block, 1); }

int32_t kv_cache_block_used(const kv_cache_block* block) {
  return block != nullptr ? reinterpret_cast<const Block*>(block)->used() : 0;
}

gen_status kv_cache_paged_new(const kv_cache_pool* pool, int32_t layers, kv_cache** out,
                              gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_TRY(not_null(out, "out"));
    // Shares the whole state, so that the allocator lives as long as the cache.
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    std::shared_ptr<TensorPool> shared(used.shared(), used->pool.get());
    GEN_ASSIGN(auto store, PagedStore::create(std::move(shared), layers));
    const size_t block_size = static_cast<size_t>(used->blocks().block_size());
    const size_t most = std::min(used->blocks().capacity(), size_t{INT32_MAX} / block_size);
    auto made = gen::api::handle_of(std::move(store), static_cast<int32_t>(most * block_size));
    made->callbacks = pool->shared.callbacks();
    *out = made.release();
    return {};
  });
}

gen_status kv_cache_block_table(const kv_cache* cache, kv_cache_block** blocks, size_t capacity,
                                size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const std::span<Block* const> table, blocks_of(c));
    *n = table.size();
    if (blocks == nullptr) return {};
    if (table.size() > capacity) {
      return gen::error(Code::kOutOfRange, "%zu blocks do not fit a buffer of %zu", table.size(),
                        capacity);
    }
    for (size_t i = 0; i < table.size(); ++i) blocks[i] = from_block(table[i]);
    return {};
  });
}

gen_status kv_cache_inject_blocks(kv_cache* cache, kv_cache_block* const* blocks, size_t n_blocks,
                                  int32_t positions, int32_t batch, int32_t dim, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(blocks, "blocks"));
    GEN_TRY(gen::api::own(c));
    auto* store = dynamic_cast<PagedStore*>(c.store.get());
    if (store == nullptr) return not_paged("kv_cache_inject_blocks", c);
    std::vector<Block*> table(n_blocks);
    for (size_t i = 0; i < n_blocks; ++i) table[i] = to_block(blocks[i]);
    return store->inject(table, positions, batch, dim);
  });
}
