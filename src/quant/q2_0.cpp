// SPDX-License-Identifier: Apache-2.0
// See q2_0.h.
#include "quant/q2_0.h"

#include <algorithm>

#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {

void unpack_q2_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q2_0Block>(bytes);
  std::fill_n(parts.run_d, 2, block.d);
  for (int i = 0; i < 8; ++i) {
    const int sixteen = block.qs[2 * i] | (block.qs[2 * i + 1] << 8);
    store_codes(spread_pairs(static_cast<uint64_t>(sixteen)), parts.codes + 8 * i);
  }
}

}  // namespace gen::quant
