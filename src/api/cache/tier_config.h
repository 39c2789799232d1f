// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache_tier_config: what tiered stores and sessions are made from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/tensor/tiered_store.h"
#include "generate/cache_choice.h"
#include <generate/base.h>

struct kv_cache_tier_config {
  gen::cache::TierOptions store;  // num_layers and max_seq_len 0: the model's
  /// What stores know nothing of; layers, length and folder are those of `store`.
  gen::generate::TierChoice sessions;
  std::shared_ptr<gen::Allocator> allocator;  // of stores; null: the system's
};

namespace gen::api {

/// kInvalidArgument for a field that has another value than its default and says something about
/// sessions only, or about stores.
Status check_for_stores(const kv_cache_tier_config& config);
Status check_for_sessions(const kv_cache_tier_config& config);

/// Checks shared by the typed setter and the one by name.
Status set_hot_memory(kv_cache_tier_config& config, int64_t mebibytes);

/// What sessions take from a configuration.
generate::TierChoice tier_choice(const kv_cache_tier_config& config);

}  // namespace gen::api
