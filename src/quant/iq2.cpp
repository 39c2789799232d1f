// SPDX-License-Identifier: Apache-2.0
// See iq2.h.
#include "quant/iq2.h"

#include "quant/iq2_grids.h"
#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {
namespace {

void put_eight(uint16_t entry, uint64_t signs, uint8_t* codes) noexcept {
  store_codes(spread_pairs(entry) | (spread_bits(signs) << 2), codes);
}

void unpack_half_scales(const uint8_t* halves, int8_t* scales) noexcept {
  for (int i = 0; i < 8; ++i) {
    scales[2 * i] = odd_scale(halves[i] & 15);
    scales[2 * i + 1] = odd_scale(halves[i] >> 4);
  }
}

}  // namespace

void unpack_iq2_xxs(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq2XxsBlock>(bytes);
  parts.d = block.d;
  for (int run = 0; run < 8; ++run) {
    uint8_t indices[4];
    uint32_t rest;
    std::memcpy(indices, block.words + 4 * run, sizeof(indices));
    std::memcpy(&rest, block.words + 4 * run + 2, sizeof(rest));
    parts.scales[run] = odd_scale(static_cast<int>(rest >> 28));
    for (int i = 0; i < 4; ++i) {
      put_eight(kIq2XxsGrid[indices[i]], even_signs((rest >> (7 * i)) & 127U),
                parts.codes + 32 * run + 8 * i);
    }
  }
}

void unpack_iq2_xs(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq2XsBlock>(bytes);
  parts.d = block.d;
  unpack_half_scales(block.scales, parts.scales);
  for (int i = 0; i < 32; ++i) {
    put_eight(kIq2XsGrid[block.qs[i] & 511], even_signs(block.qs[i] >> 9), parts.codes + 8 * i);
  }
}

void unpack_iq2_s(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq2SBlock>(bytes);
  parts.d = block.d;
  unpack_half_scales(block.scales, parts.scales);
  for (int i = 0; i < 32; ++i) {
    const int high = (block.qh[i / 4] >> (i % 4 * 2)) & 3;
    put_eight(kIq2SGrid[block.qs[i] | (high << 8)], block.signs[i], parts.codes + 8 * i);
  }
}

}  // namespace gen::quant
