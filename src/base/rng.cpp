// SPDX-License-Identifier: Apache-2.0
// Philox-4x32-10 and the uniform double on top of it. The layout of (seed, stream, counter) is part
// of the product: changing it changes every sampled text. See rng.h.
#include "base/rng.h"

namespace gen {
namespace {

// Multipliers and Weyl increments from the paper's table for the 4x32 form.
constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr uint32_t low(uint64_t value) noexcept { return static_cast<uint32_t>(value); }
constexpr uint32_t high(uint64_t value) noexcept { return static_cast<uint32_t>(value >> 32); }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double uniform_double(uint64_t seed, uint64_t stream, uint64_t counter) noexcept {
  const std::array<uint32_t, 4> block =
      philox4x32({low(counter), high(counter), low(stream), high(stream)}, {low(seed), high(seed)});
  const uint64_t bits = (uint64_t{block[1]} << 32 | block[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;  // both factors exact, so the product is
}

}  // namespace gen
