// SPDX-License-Identifier: Apache-2.0
// exp and log from additions, multiplications and divisions of doubles alone. IEEE 754 fixes each
// of these to the last bit (and the build forbids fusing them), while the exp of two C libraries
// may differ, and a different last bit is sooner or later a different token. Branch-free, so that
// loops over a row become SIMD code.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/exp_series.h"

namespace gen {

/// Two doubles, and their bits; compilers lower these for any CPU.
using Double2 = double __attribute__((vector_size(16)));
using Bits2 = uint64_t __attribute__((vector_size(16)));

/// exp(x) for x <= 0, -inf included; error below 2 units in the last place. What would be
/// subnormal is 0.
inline Double2 exp_pair(Double2 x) noexcept {
  const Bits2 mask = std::bit_cast<Bits2>(x >= kExpLowest);  // all ones where in range
  const Double2 y = std::bit_cast<Double2>(std::bit_cast<Bits2>(x) & mask);
  const Double2 rounded = y * kExpLog2E + kExpRound;
  const Double2 k = rounded - kExpRound;
  const Double2 p = exp_series(exp_rest(y, k));
  // 2^k: the shift drops all of kExpRound but k, modulo 2^12, which is enough for an exponent.
  const Bits2 scale = (std::bit_cast<Bits2>(rounded) << 52) + 0x3FF0000000000000U;
  return std::bit_cast<Double2>(std::bit_cast<Bits2>(p * std::bit_cast<Double2>(scale)) & mask);
}

/// The same for one number.
inline double portable_exp(double x) noexcept { return exp_pair(Double2{x, x})[0]; }

/// The same in place; `count` is even.
inline void portable_exp(double* values, size_t count) noexcept {
  for (size_t i = 0; i < count; i += 2) {
    Double2 pair;
    std::memcpy(&pair, values + i, sizeof pair);
    pair = exp_pair(pair);
    std::memcpy(values + i, &pair, sizeof pair);
  }
}

/// Natural logarithm of a positive normal x; error below 3 units in the last place or 1e-16.
inline double portable_log(double x) noexcept {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDU;  // bits of sqrt(1/2)

  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t e = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  // log(m) = 2 atanh(s); |s| < 0.1716, so the first term left out is below 1e-18.
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  const double tail = p * z;  // atanh(s) / s - 1
  const double k = static_cast<double>(e);
  return k * kExpLn2High + (2.0 * s + (2.0 * s * tail + k * kExpLn2Low));
}

}  // namespace gen
