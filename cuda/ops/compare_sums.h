// SPDX-License-Identifier: Apache-2.0
// Whether a library's sums are our own kernel's, bit for bit: what trials of its ways ask
// (matrix_products.h).
#pragma once

#include <cstdint>

#include "cuda/ops/context.h"

namespace gen::cuda {

/// Of the sums compared; both numbers are 0 at first.
struct SumsFound {
  uint32_t differ;
  /// Those whose order of additions shows: finite, and with some of the last four bits set. Zeros,
  /// and small whole numbers, are the same in any order.
  uint32_t telling;
};

/// [rows, outputs] in device memory. Ours have been multiplied with `factors` already, one for each
/// row, or null for none.
struct SumsView {
  const float* own;  // rows lie together
  const float* other;
  int64_t other_stride;
  const float* factors;
  int64_t rows;
  int64_t outputs;
};

/// Adds to *found, in device memory.
Status compare_sums(const OpContext& context, const SumsView& of, SumsFound* found);

}  // namespace gen::cuda
