// SPDX-License-Identifier: Apache-2.0
// See gumbel.h. log(w) - log(e), with e of the exponential distribution, is largest where e / w is
// smallest, which takes one logarithm instead of three.
#include "sampling/gumbel.h"

#include <limits>

#include "base/rng.h"
#include "base/portable_math.h"
#include "sampling/streams.h"

namespace gen::sampling {

int32_t draw_gumbel(std::span<const Candidate> candidates, uint64_t seed, uint64_t step) noexcept {
  double least = std::numeric_limits<double>::infinity();
  int32_t token = -1;
  for (const Candidate& one : candidates) {
    if (!(one.weight > 0.0)) continue;
    const uint64_t stream = kGumbelStream | uint64_t{static_cast<uint32_t>(one.token)} << 32U;
    const double uniform = uniform_double(seed, stream, step);
    const double waits = -portable_log(1.0 - uniform) / one.weight;  // 1 - u is exact, above 0
    if (token >= 0 && waits >= least) continue;
    least = waits;
    token = one.token;
  }
  return token;
}

}  // namespace gen::sampling
