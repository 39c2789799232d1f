// SPDX-License-Identifier: Apache-2.0
// See rope_sincos.h and sincos_series.h.
#include "engine/rope/rope_sincos.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/rope/sincos_series.h"

namespace gen::engine {

void rope_sincos(double x, double* sine, double* cosine) noexcept {
  if (!(std::fabs(x) <= kLargestAngle)) {
    *sine = *cosine = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const double quarter = x * kTwoOverPi;
  const auto turns = static_cast<int64_t>(quarter < 0.0 ? quarter - 0.5 : quarter + 0.5);
  const auto n = static_cast<double>(turns);
  const double r = std::fma(-n, kHalfPiLow, std::fma(-n, kHalfPiHigh, x));
  const double s = sine_series(r);
  const double c = cosine_series(r);
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

}  // namespace gen::engine
