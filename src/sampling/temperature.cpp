// SPDX-License-Identifier: Apache-2.0
// See temperature.h. The difference to the best logit is taken before dividing, so the smallest
// temperature cannot overflow.
#include "sampling/temperature.h"

#include <algorithm>
#include <array>

#include "base/portable_math.h"

namespace gen::sampling {

void weigh(float max, double temperature, std::span<Candidate> candidates) noexcept {
  // In blocks, so that the exponentials are one loop over plain arrays.
  constexpr size_t kBlock = 64;
  std::array<double, kBlock> block;
  const double top = static_cast<double>(max);
  for (size_t begin = 0; begin < candidates.size(); begin += kBlock) {
    const auto some = candidates.subspan(begin, std::min(kBlock, candidates.size() - begin));
    const size_t n = some.size();
    for (size_t i = 0; i < n; ++i) {
      block[i] = (static_cast<double>(some[i].logit) - top) / temperature;
    }
    if (n % 2 != 0) block[n] = 0.0;  // kBlock is even, so there is room
    portable_exp(block.data(), n + n % 2);
    for (size_t i = 0; i < n; ++i) some[i].weight = block[i];
  }
}

}  // namespace gen::sampling
