// SPDX-License-Identifier: Apache-2.0
// Numbers as programs write them: digits, a point and digits, or one digit before the point and a
// short exponent. All are finite doubles unless larger ones are required.
#pragma once

#include <algorithm>
#include <cstdint>

#include "grammar/expression/dfa.h"

namespace gen::grammar {

struct PlainNumbers {
  /// Every whole number of this many digits is a distinct double, and this many places distinguish
  /// doubles.
  static constexpr uint32_t kDigits = 15;
  static constexpr uint32_t kPlaces = 17;

  uint32_t digits = kDigits;     // before the point; kUnbounded: any number, here and below
  uint32_t places = kPlaces;     // after the point
  uint32_t exponent_digits = 2;  // at most 3, which allow up to 307
  bool whole = false;            // neither fraction nor exponent, and no -0

  /// With at most `most` digits in a row (JsonStyle::digits).
  static PlainNumbers within(uint32_t most) {
    if (most == 0) return {};
    return {most, most, std::min(most, 2U), false};
  }
};

Dfa plain_numbers(const PlainNumbers& shape);

}  // namespace gen::grammar
