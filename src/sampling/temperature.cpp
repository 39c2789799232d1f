// SPDX-License-Identifier: Apache-2.0
// See temperature.h. The difference to the best logit is taken before dividing, so the smallest
// temperature cannot overflow.
#include "sampling/temperature.h"

#include <algorithm>
#include <array>
#include <limits>

#include "sampling/portable_math.h"

namespace gen::sampling {

void weigh(std::span<const float> logits, float max, double temperature, float bar,
           std::vector<Candidate>* candidates) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  candidates->clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > kLowest && logits[i] >= bar) {
      candidates->push_back({static_cast<int32_t>(i), logits[i], 0.0});
    }
  }
  // In blocks, so that the exponentials are one loop over plain arrays.
  constexpr size_t kBlock = 64;
  std::array<double, kBlock> block;
  const double top = static_cast<double>(max);
  for (size_t begin = 0; begin < candidates->size(); begin += kBlock) {
    const size_t n = std::min(kBlock, candidates->size() - begin);
    Candidate* const some = candidates->data() + begin;
    for (size_t i = 0; i < n; ++i) {
      block[i] = (static_cast<double>(some[i].logit) - top) / temperature;
    }
    if (n % 2 != 0) block[n] = 0.0;  // kBlock is even, so there is room
    portable_exp(block.data(), n + n % 2);
    for (size_t i = 0; i < n; ++i) some[i].weight = block[i];
  }
}

}  // namespace gen::sampling
