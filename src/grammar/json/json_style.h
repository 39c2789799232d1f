// SPDX-License-Identifier: Apache-2.0
// How JSON is spelled where its values leave a choice. Texts that readers send may come in any
// spelling; of those that a model writes one is enough, and a small model loses itself in more.
#pragma once

#include <cstdint>

#include "grammar/expression/expression.h"

namespace gen::grammar {

struct JsonStyle {
  enum class Order : uint8_t {
    kAny,         // members in any order
    kDefinition,  // as the schema lists them, others behind them
    kPreferred,   // the same, but any order in an object of too many names for that
  };

  uint32_t space = kUnbounded;   // characters of white space in one place
  uint32_t digits = kUnbounded;  // in a row of a number; 0, in plain style: what doubles hold
  Order order = Order::kAny;
  bool one_line = false;  // of white space only blanks, and none behind the text
  /// Of strings the text of RFC 8785, where control characters without a letter (\n) are left out
  /// among others; of whole numbers the digits, of other ones finite doubles; of dates what usual
  /// decoders take.
  bool plain = false;

  /// What a model writes unless told otherwise; without it: all of RFC 8259.
  static JsonStyle of_models() {
    return {.space = 1, .digits = 0, .order = Order::kPreferred, .one_line = true, .plain = true};
  }

  [[nodiscard]] bool in_order() const noexcept { return order != Order::kAny; }
};

}  // namespace gen::grammar
