// SPDX-License-Identifier: Apache-2.0
// Which sequence a row of the batch belongs to.
#pragma once

#include "cuda/ops/device.cuh"
#include "engine/kv_layer.h"

namespace gen::cuda {

/// -1 for a row that none of them has. In a step of one row each a row's number is its sequence's,
/// so that comes first; then eight records at a time, since a look at one is a way to memory.
GEN_DEVICE int32_t sequence_of(const engine::KvRows* sequences, int32_t n, int32_t row) {
  constexpr int32_t kAtOnce = 8;
  const auto has = [&](int32_t s) {
    const int32_t within = row - sequences[s].first_row;
    return within >= 0 && within < sequences[s].n_rows;
  };
  const int32_t likely = row < n ? row : n - 1;
  if (n > 0 && has(likely)) return likely;
  for (int32_t first = 0; first < n; first += kAtOnce) {
    int32_t found = -1;
    GEN_UNROLL
    for (int32_t i = 0; i < kAtOnce; ++i) {
      if (has(first + i < n ? first + i : n - 1)) found = first + i < n ? first + i : n - 1;
    }
    if (found >= 0) return found;
  }
  return -1;
}

}  // namespace gen::cuda
