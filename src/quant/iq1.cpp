// SPDX-License-Identifier: Apache-2.0
// See iq1.h.
#include "quant/iq1.h"

#include "quant/iq1_grid.h"
#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {

void unpack_iq1_s(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq1SBlock>(bytes);
  parts.d = block.d;
  parts.dmin = block.d;
  for (int run = 0; run < 8; ++run) {
    const int rest = block.qh[run];
    const int scale = 2 * ((rest >> 12) & 7) + 1;
    // Codes are one more than the codebook's values: (code - 1 +- 1/8) * 8 = 8 * code - (8 -+ 1).
    parts.scales[run] = static_cast<int8_t>(8 * scale);
    parts.minima[run] = static_cast<uint8_t>((rest & 0x8000) != 0 ? 9 * scale : 7 * scale);
    for (int i = 0; i < 4; ++i) {
      const int index = block.qs[4 * run + i] | (((rest >> (3 * i)) & 7) << 8);
      store_codes(spread_pairs(kIq1Grid[index]), parts.codes + 32 * run + 8 * i);
    }
  }
}

void unpack_iq1_m(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq1MBlock>(bytes);
  int d = 0;
  for (int i = 0; i < 4; ++i) d |= (block.scales[i] >> 12) << (4 * i);
  parts.d = static_cast<uint16_t>(d);
  for (int run = 0; run < 16; ++run) {
    const int s = (block.scales[run / 4] >> (run % 4 * 3)) & 7;
    parts.scales[run] = static_cast<int8_t>(2 * s + 1);
  }
  for (int i = 0; i < 32; ++i) {
    const int rest = block.qh[i / 2] >> (i % 2 * 4);
    const uint64_t down = (rest & 8) != 0 ? 0x0404040404040404U : 0;
    store_codes(spread_pairs(kIq1Grid[block.qs[i] | ((rest & 7) << 8)]) | down,
                parts.codes + 8 * i);
  }
}

}  // namespace gen::quant
