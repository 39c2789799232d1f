// SPDX-License-Identifier: Apache-2.0
// How JSON is written where its values leave a choice. Texts to be checked may have any form; for a
// model one form is enough, and a small model gets lost with more.
#pragma once

#include <cstdint>

#include "grammar/expression/expression.h"

namespace gen::grammar {

struct JsonStyle {
  enum class Order : uint8_t {
    kAny,         // members in any order
    kDefinition,  // as the schema lists them, others after them
    kPreferred,   // the same, but any order in an object with too many names for that
  };

  uint32_t space = kUnbounded;   // characters of white space in one place
  uint32_t digits = kUnbounded;  // digits in a row; 0, in plain style: as many as doubles hold
  Order order = Order::kAny;
  bool one_line = false;  // white space is blanks only, and none after the text
  /// Strings in the form of RFC 8785, without control characters that have no letter escape (such
  /// as \n); whole numbers as digits, other numbers as finite doubles; dates in the form that usual
  /// decoders accept.
  bool plain = false;

  /// The default for models; without it: all of RFC 8259.
  static JsonStyle of_models() {
    return {.space = 1, .digits = 0, .order = Order::kPreferred, .one_line = true, .plain = true};
  }

  [[nodiscard]] bool in_order() const noexcept { return order != Order::kAny; }
};

}  // namespace gen::grammar
