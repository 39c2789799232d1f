// SPDX-License-Identifier: Apache-2.0
// kv_cache_pool.h of the C API. A kv_cache_block is the address of a cache::Block.
#include <generate/kv_cache_pool.h>

#include <memory>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/boundary/c_allocator.h"
#include "api/boundary/c_gpu_allocator.h"
#include "api/cache/pool_handle.h"
#include "cache/element_type.h"
#include "cache/tensor/paged_store.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::from_block;
using gen::api::guard;
using gen::api::not_null;
using gen::api::PoolState;
using gen::api::to_block;
using gen::cache::Block;
using gen::cache::TensorPool;

gen::Result<gen::DType> element_type(const char* dtype) {
  GEN_TRY(not_null(dtype, "dtype"));
  return gen::cache::find_element_type(dtype, TensorPool::kTypes, "a pool");
}

/// The first half of a block holds keys, the second values.
void* half_of(const kv_cache_block* block, size_t half) {
  if (block == nullptr) return nullptr;
  const auto& own = *reinterpret_cast<const Block*>(block);
  if (!own.pool().holds_tensors()) return nullptr;  // a session's pool holds tiles
  const size_t offset = half * (own.pool().block_bytes() / 2);
  if (std::byte* const at = own.pool().memory().host(own.data()); at != nullptr) return at + offset;
  return reinterpret_cast<void*>(own.data().address() + offset);  // may be a device address
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
