// SPDX-License-Identifier: Apache-2.0
// Compares a library's sums with our own kernel's, bit for bit, for the trials of its algorithms
// (matrix_products.h).
#pragma once

#include <cstdint>

#include "cuda/ops/context.h"

namespace gen::cuda {

/// Counts of compared sums, in device memory. The caller sets both to 0 before the first kernel.
struct SumsFound {
  uint32_t differ;
  /// Our sums that depend on the order of additions: finite, with a bit set among the last four.
  /// Zeros and small whole numbers are equal in any order.
  uint32_t telling;
};

/// Two tensors [rows, outputs] in device memory. `own` has been multiplied by the rows' factors,
/// `other` has not.
struct SumsView {
  const float* own;  // contiguous
  const float* other;
  int64_t other_stride;  // in elements
  const float* factors;  // [rows], or null for none
  int64_t rows;
  int64_t outputs;
};

/// Adds to *found.
Status compare_sums(const OpContext& context, const SumsView& of, SumsFound* found);

}  // namespace gen::cuda
