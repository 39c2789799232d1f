// SPDX-License-Identifier: Apache-2.0
// See q1_0.h.
#include "quant/q1_0.h"

#include <algorithm>

#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {

void unpack_q1_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q1_0Block>(bytes);
  std::fill_n(parts.run_d, 4, block.d);
  for (int i = 0; i < 16; ++i) store_codes(spread_bits(block.qs[i]), parts.codes + 8 * i);
}

}  // namespace gen::quant
