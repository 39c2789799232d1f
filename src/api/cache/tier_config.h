// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache_tier_config, the configuration of tiered stores and sessions.
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
  /// Fields for sessions only; layers, length and folder are in `store`.
  gen::generate::TierChoice sessions;
  std::shared_ptr<gen::Allocator> allocator;  // allocator of stores; null: the system's
};

namespace gen::api {

/// kInvalidArgument if a field that only sessions (or only stores) use differs from its default.
Status check_for_stores(const kv_cache_tier_config& config);
Status check_for_sessions(const kv_cache_tier_config& config);

/// The checks of the typed setter and of the one by name.
Status set_hot_memory(kv_cache_tier_config& config, int64_t mebibytes);

/// The fields of a configuration that sessions use.
generate::TierChoice tier_choice(const kv_cache_tier_config& config);

}  // namespace gen::api
