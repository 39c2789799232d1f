// SPDX-License-Identifier: Apache-2.0
// Classes of bytes that grammars usually accept or reject together: at most 64, so that sets of
// classes fit into a word. Punctuation marks have a class each, letters and digits only a few.
#pragma once

#include <array>
#include <cstdint>

namespace gen::grammar {

inline constexpr uint8_t kFirstMark = 11;  // white space and ASCII punctuation have kinds from here
                                           // on

inline constexpr std::array<uint8_t, 256> kByteKinds = [] {
  std::array<uint8_t, 256> kinds{};
  const auto fill = [&](uint32_t low, uint32_t high, uint8_t kind) {
    for (uint32_t byte = low; byte <= high; ++byte) kinds[byte] = kind;
  };
  uint8_t next = kFirstMark;
  for (uint32_t byte = 0x20; byte < 0x7F; ++byte) {
    const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    if (letter || (byte >= '0' && byte <= '9')) continue;
    kinds[byte] = next++;
  }
  fill(0, 0x1F, 0);
  kinds[0x7F] = 0;
  kinds['\t'] = 1;
  kinds['\n'] = kinds['\r'] = 2;
  fill('0', '9', 3);
  fill('A', 'F', 4);
  fill('a', 'f', 5);
  fill('G', 'Z', 6);
  fill('g', 'z', 7);
  fill(0x80, 0xBF, 8);
  fill(0xC0, 0xEF, 9);
  fill(0xF0, 0xFF, 10);
  return kinds;
}();

static_assert([] {
  for (const uint8_t kind : kByteKinds) {
    if (kind >= 64) return false;
  }
  return true;
}());

}  // namespace gen::grammar
