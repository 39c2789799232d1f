// SPDX-License-Identifier: Apache-2.0
// The least memory traffic and arithmetic of an operation, to which profiles compare its time.
#pragma once

#include <cstdint>
#include <span>

#include "engine/ops.h"

namespace gen::engine {

struct OpCost {
  /// Bytes read from memory if the CPU caches are cold: the weights of a product, the keys and
  /// values of the visible entries for attention; 0 for all others.
  int64_t bytes = 0;
  /// Multiply-adds of a matrix product or an attention.
  int64_t products = 0;
};

/// `sequences` is a host copy of the arguments' sequences.
OpCost op_cost(const OpArgs& args, std::span<const KvRows> sequences = {}) noexcept;

}  // namespace gen::engine
