// SPDX-License-Identifier: Apache-2.0
// The stage that removes tokens forbidden by a grammar, or by any other rule of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::sampling {

/// Token t may come next if bit t % 32 of bits[t / 32] is set; tokens beyond the bits may not.
struct TokenMask {
  std::span<const uint32_t> bits;
  [[nodiscard]] bool allows(int32_t token) const noexcept {
    const auto at = static_cast<size_t>(token);
    return at / 32 < bits.size() && (bits[at / 32] >> (at % 32) & 1U) != 0;
  }
};

/// Sets the logits of forbidden tokens to -inf.
void apply_mask(const TokenMask& mask, std::span<float> logits) noexcept;

}  // namespace gen::sampling
