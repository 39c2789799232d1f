// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache_tier_config: what tiered stores and sessions are made from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "cache/tensor/tiered_store.h"
#include <generate/base.h>

struct kv_cache_tier_config {
  gen::cache::TierOptions store;  // num_layers and max_seq_len 0: the model's
  int32_t hot_mb = 1024;
  int32_t hot_blocks = 0;
  int32_t block_size = gen::cache::TieredCacheOptions::kBlockSize;
  int32_t prefetch_layers = -1;               // by the CPUs that are free
  std::shared_ptr<gen::Allocator> allocator;  // of stores; null: the system's
};

namespace gen::api {

/// kInvalidArgument for a field that has another value than its default and says something about
/// sessions only, or about stores.
Status check_for_stores(const kv_cache_tier_config& config);
Status check_for_sessions(const kv_cache_tier_config& config);

/// Checks shared by the typed setter and the one by name.
Status set_hot_memory(kv_cache_tier_config& config, int64_t mebibytes);

/// What sessions over `layers` layers take from a configuration, in the format named; `spare_cpu`
/// if the model leaves one to others. kInvalidArgument for another number of layers.
Result<cache::TieredCacheOptions> session_tiers(const kv_cache_tier_config& config,
                                                const char* format, size_t layers, bool spare_cpu);

}  // namespace gen::api
