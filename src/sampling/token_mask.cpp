// SPDX-License-Identifier: Apache-2.0
// See token_mask.h.
#include "sampling/token_mask.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gen::sampling {

void apply_mask(const TokenMask& mask, std::span<float> logits) noexcept {
  constexpr size_t kWord = 32;
  constexpr float kOut = -std::numeric_limits<float>::infinity();
  for (size_t begin = 0; begin < logits.size(); begin += kWord) {
    const size_t word = begin / kWord;
    const uint32_t bits = word < mask.bits.size() ? mask.bits[word] : 0;
    if (bits == ~uint32_t{0}) continue;
    const auto some = logits.subspan(begin, std::min(kWord, logits.size() - begin));
    if (bits == 0) {
      std::fill(some.begin(), some.end(), kOut);
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i) {
      some[i] = (bits & (uint32_t{1} << i)) != 0 ? some[i] : kOut;
    }
  }
}

}  // namespace gen::sampling
