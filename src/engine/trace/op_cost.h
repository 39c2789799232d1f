// SPDX-License-Identifier: Apache-2.0
// What an operation must read and multiply at least: the yardstick of profiles.
#pragma once

#include <cstdint>
#include <span>

#include "engine/ops.h"

namespace gen::engine {

struct OpCost {
  /// What must come from memory if nothing is cached: weights of a product, keys and values of the
  /// visible entries for attention; 0 for all others.
  int64_t bytes = 0;
  /// Products that are summed (a multiplication and an addition each) of a product or an attention.
  int64_t products = 0;
};

/// `sequences` are the host's copy of those of the arguments.
OpCost op_cost(const OpArgs& args, std::span<const KvRows> sequences = {}) noexcept;

}  // namespace gen::engine
