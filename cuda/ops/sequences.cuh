// SPDX-License-Identifier: Apache-2.0
// Which sequence a row of the batch belongs to.
#pragma once

#include "cuda/ops/device.cuh"
#include "engine/kv_layer.h"

namespace gen::cuda {

/// -1 for a row that none of them has. In a step of one row each a row's number is its sequence's,
/// so that comes first: a look at a record is a way to memory and back.
GEN_DEVICE int32_t sequence_of(const engine::KvRows* sequences, int32_t n, int32_t row) {
  const auto has = [&](int32_t s) {
    const int32_t within = row - sequences[s].first_row;
    return within >= 0 && within < sequences[s].n_rows;
  };
  const int32_t likely = row < n ? row : n - 1;
  if (n > 0 && has(likely)) return likely;
  for (int32_t s = 0; s < n; ++s) {
    if (has(s)) return s;
  }
  return -1;
}

}  // namespace gen::cuda
