// SPDX-License-Identifier: Apache-2.0
// The scale of least weighted squared error for a few whole levels: exact, where k_fit.h tries
// scales. For types of so few levels that all scales can be walked through.
#pragma once

#include <cstdint>

namespace gen::quant {

/// The scale for n weights, at most 256, with levels from -1 to `top`, 1 or 2; of either sign if
/// `top` is 2. Shares are at most 1.
float walk_scales(const float* x, const float* shares, int n, int top);

/// The code, level + 1, of the level that is nearest to x / d.
uint8_t nearest_level(float x, float d, int top) noexcept;

}  // namespace gen::quant
