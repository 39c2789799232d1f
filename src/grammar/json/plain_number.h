// SPDX-License-Identifier: Apache-2.0
// Numbers as programs write them: digits, a point and digits, or one digit before the point and a
// short exponent. All are finite doubles unless they are asked to be larger.
#pragma once

#include <algorithm>
#include <cstdint>

#include "grammar/expression/dfa.h"

namespace gen::grammar {

struct PlainNumbers {
  /// Any whole number of so many digits is one double alone, and so many places tell doubles apart.
  static constexpr uint32_t kDigits = 15;
  static constexpr uint32_t kPlaces = 17;

  uint32_t digits = kDigits;     // before the point; kUnbounded: any number, here and below
  uint32_t places = kPlaces;     // behind it
  uint32_t exponent_digits = 2;  // at most 3, which go up to 307
  bool whole = false;            // neither fraction nor exponent, and no -0

  /// With at most so many digits in a row (JsonStyle::digits).
  static PlainNumbers within(uint32_t most) {
    if (most == 0) return {};
    return {most, most, std::min(most, 2U), false};
  }
};

Dfa plain_numbers(const PlainNumbers& shape);

}  // namespace gen::grammar
