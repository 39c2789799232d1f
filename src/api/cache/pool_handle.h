// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache_pool, for objects that use a pool.
#pragma once

#include <memory>

#include "api/boundary/entry.h"
#include "base/allocator.h"
#include "base/home_process.h"
#include "cache/tensor/paged_store.h"
#include <generate/kv_cache_pool.h>

namespace gen::api {

/// A pool and the allocator of its memory, which must be destroyed last.
struct PoolState {
  std::shared_ptr<Allocator> allocator;  // null: the system's, or a device's that the pool keeps
  std::shared_ptr<cache::TensorPool> pool;

  [[nodiscard]] cache::BlockPool& blocks() const { return pool->blocks(); }
};

/// A kv_cache_block is the address of a cache::Block.
inline cache::Block* to_block(kv_cache_block* block) {
  return reinterpret_cast<cache::Block*>(block);
}
inline kv_cache_block* from_block(cache::Block* block) {
  return reinterpret_cast<kv_cache_block*>(block);
}

}  // namespace gen::api

struct kv_cache_pool : gen::Postponed {
  gen::api::Shared<gen::api::PoolState> shared;
  gen::HomeProcess home;
};
