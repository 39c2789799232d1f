// SPDX-License-Identifier: Apache-2.0
// Paged caches of kv_cache_pool.h: tensors in blocks of a pool.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "api/cache/pool_handle.h"
#include "cache/tensor/paged_store.h"
#include <generate/kv_cache_pool.h>

namespace {

using gen::Code;
using gen::Status;
using gen::api::CacheBody;
using gen::api::from_block;
using gen::api::guard;
using gen::api::not_null;
using gen::api::to_block;
using gen::api::with_cache;
using gen::cache::Block;
using gen::cache::PagedStore;
using gen::cache::TensorPool;

class PagedCache final : public gen::api::StoredCache<PagedStore> {
 public:
  using StoredCache::StoredCache;
  [[nodiscard]] PagedStore* takes_blocks() noexcept override { return &store(); }
  [[nodiscard]] std::optional<std::span<Block* const>> block_table() const noexcept override {
    return store().block_table();
  }
  [[nodiscard]] const char* tensors_only() const noexcept override {
    return "a cache of kv_cache_paged_new holds tensors; gen_options_set_paged_kv and "
           "kv_cache_generator_new make a paged one for models";
  }
  [[nodiscard]] gen::Result<std::shared_ptr<CacheBody>> clone() const override {
    GEN_ASSIGN(auto copy, store().copied());
    auto made = std::make_shared<PagedCache>(std::move(copy), label_.max_seq_len);
    made->share_settings(*this);
    return std::shared_ptr<CacheBody>(std::move(made));
  }
};

}  // namespace

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
    auto made = gen::api::handle_of(
        std::make_shared<PagedCache>(std::move(store), static_cast<int32_t>(most * block_size)));
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
    const auto table = c.body->block_table();
    if (!table.has_value()) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_block_table", "paged caches",
                                    c);
    }
    *n = table->size();
    if (blocks == nullptr) return {};
    if (table->size() > capacity) {
      return gen::error(Code::kOutOfRange, "%zu blocks do not fit a buffer of %zu", table->size(),
                        capacity);
    }
    std::transform(table->begin(), table->end(), blocks, from_block);
    return {};
  });
}

gen_status kv_cache_inject_blocks(kv_cache* cache, kv_cache_block* const* blocks, size_t n_blocks,
                                  int32_t positions, int32_t batch, int32_t dim, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(blocks, "blocks"));
    GEN_TRY(gen::api::own(c));
    PagedStore* const store = c.body->takes_blocks();
    if (store == nullptr) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_inject_blocks",
                                    "caches of kv_cache_paged_new", c);
    }
    std::vector<Block*> table(n_blocks);
    for (size_t i = 0; i < n_blocks; ++i) table[i] = to_block(blocks[i]);
    return store->inject(table, positions, batch, dim);
  });
}
