// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of rope angles in double, from IEEE operations only, so that every machine gives
// the same bits (libm's differ between versions). Measured in tests/engine/rope_test.cpp.
#pragma once

namespace gen::engine {

/// Absolute error below 3e-16 for |x| <= 2^32, which holds any int32 position times a frequency of
/// at most 2; NaN above and for what is not finite.
void rope_sincos(double x, double* sine, double* cosine) noexcept;

}  // namespace gen::engine
