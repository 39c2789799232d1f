// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of rope angles in double, from IEEE operations only, so that every machine gives
// the same bits (results of libm differ between versions). Errors are measured in
// tests/engine/rope_test.cpp.
#pragma once

namespace gen::engine {

/// Absolute error below 3e-16 for |x| <= 2^32, which covers any int32 position times a frequency of
/// at most 2; NaN above and for infinities and NaN.
void rope_sincos(double x, double* sine, double* cosine) noexcept;

}  // namespace gen::engine
