// SPDX-License-Identifier: Apache-2.0
// Tiered caches of kv_cache_tiered.h; tier_config.cpp has their configuration. A handle has the
// same store all its life, and any thread may use the store, so these calls do not take the
// handle's in-use flag.
#include <generate/kv_cache_tiered.h>

#include <memory>
#include <span>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "api/cache/tier_config.h"
#include "cache/tensor/tiered_store.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::CacheBody;
using gen::api::guard;
using gen::api::not_null;
using gen::cache::TieredStore;

class TieredCache final : public gen::api::StoredCache<TieredStore> {
 public:
  using StoredCache::StoredCache;
  [[nodiscard]] TieredStore* tiers() noexcept override { return &store(); }
  [[nodiscard]] const char* tensors_only() const noexcept override {
    return "a cache of kv_cache_tiered_new holds tensors; gen_options_set_tiered_kv and "
           "kv_cache_generator_new make a tiered one for models";
  }
  [[nodiscard]] gen::Result<std::shared_ptr<CacheBody>> clone() const override {
    GEN_ASSIGN(auto copy, store().copied());
    auto made = std::make_shared<TieredCache>(std::move(copy), label_.max_seq_len);
    made->share_settings(*this);
    return std::shared_ptr<CacheBody>(std::move(made));
  }
};

/// Null if the cache has no tiers.
TieredStore* find_store(const kv_cache* cache) {
  return cache != nullptr ? cache->body->tiers() : nullptr;
}

template <typename F>
gen_status with_store(const kv_cache* cache, const char* call, gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(cache, "cache"));
    const gen::api::Entry entry(cache->callbacks);
    GEN_TRY(entry.entered("the cache"));
    TieredStore* const store = find_store(cache);
    if (store == nullptr) {
      return gen::api::other_family(Code::kInvalidArgument, call, "caches of kv_cache_tiered_new",
                                    *cache);
    }
    // A tiered handle never changes its body, so no flag is needed. The handle may be freed
    // meanwhile.
    const auto keeps = cache->body;
    return body(*store);
  });
}

using Maker = gen::Result<std::unique_ptr<TieredStore>> (*)(const gen::cache::TierOptions&,
                                                            gen::Allocator&);

gen_status make(const kv_cache_tier_config* config, Maker maker, kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    GEN_TRY(not_null(out, "out"));
    // A copy, because a callback may free the configuration.
    const kv_cache_tier_config chosen = *config;
    const auto table = chosen.allocator != nullptr ? chosen.allocator->callbacks() : nullptr;
    const auto& device = chosen.store.device;
    const auto of_device = device != nullptr ? device->callbacks() : nullptr;
    const gen::api::Entry entry(gen::api::joined({table, of_device}));
    GEN_TRY(entry.entered("the allocator"));
    gen::Allocator& memory =
        chosen.allocator != nullptr ? *chosen.allocator : gen::system_allocator();
    GEN_TRY(gen::api::check_for_stores(chosen));
    GEN_ASSIGN(auto store, maker(chosen.store, memory));
    auto body = std::make_shared<TieredCache>(std::move(store), chosen.store.max_seq_len);
    body->use_allocator(chosen.allocator);
    auto made = gen::api::handle_of(std::move(body));
    made->callbacks = gen::api::joined({table, of_device});
    *out = made.release();
    return {};
  });
}

}  // namespace

gen_status kv_cache_tiered_new(const kv_cache_tier_config* config, kv_cache** out,
                               gen_error* error) {
  return make(config, TieredStore::create, out, error);
}

gen_status kv_cache_tiered_open(const kv_cache_tier_config* config, kv_cache** out,
                                gen_error* error) {
  return make(config, TieredStore::open, out, error);
}

int32_t kv_cache_tiered_tier(const kv_cache* cache, int32_t layer) {
  const TieredStore* store = find_store(cache);
  return store != nullptr ? static_cast<int32_t>(store->tier(layer)) : KV_CACHE_TIER_HOT;
}

int64_t kv_cache_tiered_access_count(const kv_cache* cache, int32_t layer) {
  const TieredStore* store = find_store(cache);
  return store != nullptr ? store->access_count(layer) : 0;
}

int32_t kv_cache_tiered_is_lossy(const kv_cache* cache, int32_t layer) {
  const TieredStore* store = find_store(cache);
  return store != nullptr && store->is_lossy(layer) ? 1 : 0;
}

gen_status kv_cache_tiered_promote(const kv_cache* cache, int32_t layer, gen_error* error) {
  return with_store(cache, __func__, error,
                    [&](TieredStore& store) { return store.promote(layer); });
}

gen_status kv_cache_tiered_demote(const kv_cache* cache, int32_t layer, gen_error* error) {
  return with_store(cache, __func__, error,
                    [&](TieredStore& store) { return store.demote(layer); });
}

gen_status kv_cache_tiered_manage(const kv_cache* cache, gen_error* error) {
  return with_store(cache, __func__, error, [](TieredStore& store) { return store.manage(); });
}

gen_status kv_cache_tiered_prefetch_async(const kv_cache* cache, const int32_t* layers, size_t n,
                                          gen_error* error) {
  return with_store(cache, __func__, error, [&](TieredStore& store) -> Status {
    if (n > 0) GEN_TRY(not_null(layers, "layers"));
    return store.prefetch(std::span(layers, n));
  });
}

gen_status kv_cache_tiered_get_prefetched(const kv_cache* cache, int32_t layer, float* k,
                                          size_t k_capacity, float* v, size_t v_capacity,
                                          int32_t shape[3], gen_error* error) {
  gen::cache::TensorShape found;
  const gen_status status = with_store(cache, __func__, error, [&](TieredStore& store) {
    return store.take_prefetched(layer, k, k_capacity, v, v_capacity, &found);
  });
  if (shape != nullptr) {
    shape[0] = found.batch;
    shape[1] = found.seq;
    shape[2] = found.dim;
  }
  return status;
}

gen_status kv_cache_tiered_close(const kv_cache* cache, gen_error* error) {
  return with_store(cache, __func__, error, [](TieredStore& store) { return store.close(); });
}
