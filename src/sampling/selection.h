// SPDX-License-Identifier: Apache-2.0
// Finding large values without sorting a vocabulary.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gen::sampling {

/// The k-th largest value, counting ties separately; k in [1, values.size()]. `values` may contain
/// -inf but no NaN. One pass; only values above the k best so far are examined twice. `scratch` is
/// overwritten.
float kth_largest(std::span<const float> values, size_t k, std::vector<float>* scratch);

/// Largest value; -inf for an empty row. No NaN.
float row_max(std::span<const float> row) noexcept;

}  // namespace gen::sampling
