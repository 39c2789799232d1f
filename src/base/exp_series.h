// SPDX-License-Identifier: Apache-2.0
// The common part of the exponentials of host and device, so that their bits are the same: x = k
// ln(2) + r with |r| <= ln(2) / 2, then Taylor's series of exp(r). V is double or a vector of
// doubles; nothing may be fused. The functions may run on a device, too.
#pragma once

namespace gen {

constexpr double kExpLowest = -708.0;   // below it the result would be subnormal
constexpr double kExpRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
constexpr double kExpLog2E = 0x1.71547652b82fep+0;
constexpr double kExpLn2High = 0x1.62e42fee00000p-1;  // 32 bits, so that k * kExpLn2High is exact
constexpr double kExpLn2Low = 0x1.a39ef35793c76p-33;

/// r of x, whose k is a whole number.
template <typename V>
constexpr V exp_rest(V x, V k) noexcept {
  return (x - k * kExpLn2High) - k * kExpLn2Low;
}

/// exp(r); the first term left out is r^14 / 14! < 5e-18.
template <typename V>
constexpr V exp_series(V r) noexcept {
  V p = (1.0 / 6227020800.0) * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  return p * r + 1.0;
}

}  // namespace gen
