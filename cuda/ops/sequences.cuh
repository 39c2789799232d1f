// SPDX-License-Identifier: Apache-2.0
// Which sequence a row of the batch belongs to.
#pragma once

#include "cuda/ops/device.cuh"
#include "engine/kv_layer.h"

namespace gen::cuda {

/// -1 for a row that none of them has. A step has few sequences, whose records all threads read.
GEN_DEVICE int32_t sequence_of(const engine::KvRows* sequences, int32_t n, int32_t row) {
  for (int32_t s = 0; s < n; ++s) {
    const int32_t within = row - sequences[s].first_row;
    if (within >= 0 && within < sequences[s].n_rows) return s;
  }
  return -1;
}

}  // namespace gen::cuda
