// SPDX-License-Identifier: Apache-2.0
// See iq3.h.
#include "quant/iq3.h"

#include "quant/iq3_grids.h"
#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {
namespace {

// Two entries, of eight weights.
void put_pair(uint32_t first, uint32_t second, uint64_t signs, uint8_t* codes) noexcept {
  store_codes(spread_threes(first | (second << 12)) | (spread_bits(signs) << 3), codes);
}

}  // namespace

void unpack_iq3_xxs(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq3XxsBlock>(bytes);
  parts.d = block.d;
  for (int run = 0; run < 8; ++run) {
    uint32_t rest;
    std::memcpy(&rest, block.rest + 2 * run, sizeof(rest));
    parts.scales[run] = odd_scale(static_cast<int>(rest >> 28));
    for (int i = 0; i < 4; ++i) {
      const uint8_t* indices = block.qs + 8 * run + 2 * i;
      put_pair(kIq3XxsGrid[indices[0]], kIq3XxsGrid[indices[1]],
               even_signs((rest >> (7 * i)) & 127U), parts.codes + 32 * run + 8 * i);
    }
  }
}

void unpack_iq3_s(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq3SBlock>(bytes);
  parts.d = block.d;
  for (int run = 0; run < 8; ++run) {
    parts.scales[run] = odd_scale((block.scales[run / 2] >> (run % 2 * 4)) & 15);
    for (int i = 0; i < 4; ++i) {
      const uint8_t* low = block.qs + 8 * run + 2 * i;
      const int high = block.qh[run] >> (2 * i);
      put_pair(kIq3SGrid[low[0] | ((high & 1) << 8)], kIq3SGrid[low[1] | ((high & 2) << 7)],
               block.signs[4 * run + i], parts.codes + 32 * run + 8 * i);
    }
  }
}

}  // namespace gen::quant
