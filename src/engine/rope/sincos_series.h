// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of rope angles, shared by all engines: x = n * pi/2 + r with |r| <= pi/4, then
// the Taylor series of r. pi/2 is split into two doubles: n has at most 32 bits, so the first fused
// step subtracts n * pi/2 from x without rounding, and the second step brings the error below
// 2^-53. The terms up to r^17 leave an error below 1e-18. The functions also run on devices; their
// multiplications and additions must not be contracted.
#pragma once

namespace gen::engine {

constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
/// The largest |x|: any int32 position times a frequency of at most 2.
constexpr double kLargestAngle = 4294967296.0;

constexpr double sine_series(double r) noexcept {
  const double y = r * r;
  double p = 1.0 / 355687428096000.0;  // 17!
  p = p * y - 1.0 / 1307674368000.0;
  p = p * y + 1.0 / 6227020800.0;
  p = p * y - 1.0 / 39916800.0;
  p = p * y + 1.0 / 362880.0;
  p = p * y - 1.0 / 5040.0;
  p = p * y + 1.0 / 120.0;
  p = p * y - 1.0 / 6.0;
  return r + r * y * p;
}

constexpr double cosine_series(double r) noexcept {
  const double y = r * r;
  double p = 1.0 / 20922789888000.0;  // 16!
  p = p * y - 1.0 / 87178291200.0;
  p = p * y + 1.0 / 479001600.0;
  p = p * y - 1.0 / 3628800.0;
  p = p * y + 1.0 / 40320.0;
  p = p * y - 1.0 / 720.0;
  p = p * y + 1.0 / 24.0;
  p = p * y - 0.5;
  return 1.0 + y * p;
}

}  // namespace gen::engine
