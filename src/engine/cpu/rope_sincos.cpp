// SPDX-License-Identifier: Apache-2.0
// x = n * pi/2 + r with |r| <= pi/4, then Taylor series of r and the quadrant's signs. pi/2 is
// taken in two doubles: n has at most 32 bits, so n * pi/2 cancels against x without a rounding in
// the first fused step, and the second step brings the error below 2^-53. Terms up to r^17 leave
// less than 1e-18.
#include "engine/cpu/rope_sincos.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace gen::engine::cpu {
namespace {

constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kLargest = 4294967296.0;

double sine_of(double r) {
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

double cosine_of(double r) {
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

}  // namespace

void rope_sincos(double x, double* sine, double* cosine) noexcept {
  if (!(std::fabs(x) <= kLargest)) {
    *sine = *cosine = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const double quarter = x * kTwoOverPi;
  const auto turns = static_cast<int64_t>(quarter < 0.0 ? quarter - 0.5 : quarter + 0.5);
  const auto n = static_cast<double>(turns);
  const double r = std::fma(-n, kHalfPiLow, std::fma(-n, kHalfPiHigh, x));
  const double s = sine_of(r);
  const double c = cosine_of(r);
  switch (turns & 3) {
    case 0:
      *sine = s, *cosine = c;
      break;
    case 1:
      *sine = c, *cosine = -s;
      break;
    case 2:
      *sine = -s, *cosine = -c;
      break;
    default:
      *sine = -c, *cosine = s;
      break;
  }
}

}  // namespace gen::engine::cpu
