// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache_pool, for what is made over a pool.
#pragma once

#include <memory>

#include "base/allocator.h"
#include "base/home_process.h"
#include "cache/paged_store.h"
#include <generate/kv_cache_pool.h>

namespace gen::api {

/// A pool with what its memory comes from, which must go last.
struct PoolState {
  std::shared_ptr<Allocator> allocator;  // null: the system's
  std::shared_ptr<cache::TensorPool> pool;
};

}  // namespace gen::api

struct kv_cache_pool {
  std::shared_ptr<gen::api::PoolState> state;
  gen::HomeProcess home;

  [[nodiscard]] gen::cache::BlockPool& blocks() const { return state->pool->blocks(); }
};
