// SPDX-License-Identifier: Apache-2.0
// Unicode's property White_Space, which has not changed for twenty years.
#pragma once

#include <cstdint>

namespace gen::tokenizer {

constexpr bool is_white_space(uint32_t c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace gen::tokenizer
