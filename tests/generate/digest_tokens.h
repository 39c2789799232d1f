// SPDX-License-Identifier: Apache-2.0
// The tokens of the tests' custom models: a digest of all earlier tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::generate {

using Tokens = std::vector<int32_t>;

inline constexpr int32_t kVocab = 43;
inline constexpr int32_t kPoison = 42;  // is never generated

inline int32_t after(std::span<const int32_t> tokens) {
  uint32_t digest = 3;
  for (const int32_t token : tokens) digest = digest * 131 + static_cast<uint32_t>(token) + 1;
  return static_cast<int32_t>((digest >> 2) % kPoison);
}

/// The n tokens that follow.
inline Tokens expected(Tokens tokens, int32_t n) {
  const auto given = static_cast<ptrdiff_t>(tokens.size());
  for (int32_t i = 0; i < n; ++i) tokens.push_back(after(tokens));
  return {tokens.begin() + given, tokens.end()};
}

}  // namespace gen::generate
