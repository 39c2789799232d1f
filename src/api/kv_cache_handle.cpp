// SPDX-License-Identifier: Apache-2.0
// The engine's side of kv_cache handles. See kv_cache_handle.h; the public functions are in
// kv_cache.cpp.
#include "api/kv_cache_handle.h"

#include <algorithm>

#include "api/handles.h"
#include "cache/registry.h"

namespace gen::api {
namespace {

bool same_shape(const cache::LayerShape& a, const cache::LayerShape& b) {
  return a.kv_heads == b.kv_heads && a.k_dim == b.k_dim && a.v_dim == b.v_dim &&
         a.window == b.window && a.rope == b.rope && a.rope_dims == b.rope_dims;
}

}  // namespace

Result<cache::KvCache*> engine_cache(kv_cache& cache, std::span<const cache::LayerShape> layers,
                                     int32_t capacity) {
  if (cache.store != nullptr) {
    return Status(Code::kState, "the cache was filled through kv_cache_update");
  }
  if (static_cast<size_t>(cache.num_layers) != layers.size()) {
    return error(Code::kInvalidArgument, "a cache of %d layers for a model of %zu layers",
                 cache.num_layers, layers.size());
  }
  if (cache.engine() == nullptr) {
    Allocator& allocator = cache.allocator != nullptr ? *cache.allocator : system_allocator();
    GEN_ASSIGN(cache.owned, cache::make_cache(cache.kind, layers,
                                              std::min(cache.max_seq_len, capacity), allocator));
    cache.seen_owned.store(cache.owned.get(), std::memory_order_release);
  }
  const auto held = cache.engine()->layers();
  if (!std::equal(held.begin(), held.end(), layers.begin(), layers.end(), same_shape)) {
    return Status(Code::kInvalidArgument, "the cache was shaped by another model's layers");
  }
  return cache.engine();
}

void lend_cache(generate::Session& session, kv_cache* handle) {
  const cache::KvCache& inner = session.cache();
  handle->kind = inner.traits().kind;
  handle->num_layers = static_cast<int32_t>(inner.layers().size());
  handle->max_seq_len = inner.capacity();
  // Readers get a const kv_cache; the functions that write refuse a lent one.
  handle->lent = [&session] { return const_cast<cache::KvCache*>(&session.cache()); };
  handle->in_use = &session.in_use();
}

}  // namespace gen::api
