// SPDX-License-Identifier: Apache-2.0
// See iq1.h.
#include "quant/iq1.h"

#include "quant/codebook_fit.h"
#include "quant/iq1_grid.h"
#include "quant/packing.h"
#include "quant/spread.h"

namespace gen::quant {
namespace {

constexpr int kEntries = 2048;
constexpr int kHalvings = 3;
constexpr float kUp[4] = {-7.0F, 1.0F, 9.0F, 0.0F};  // eighths; no entry has the last
constexpr float kDown[4] = {-9.0F, -1.0F, 7.0F, 0.0F};

// The sums of a unit for all entries moved up, then for those moved down.
class UnitChoices {
 public:
  UnitChoices(const NormalBlock& block, int unit) {
    const float* x = block.x + 8 * unit;
    const float* shares = block.shares + 8 * unit;
    EntrySums<2, 4>(x, shares, kUp).sum(kIq1Grid, kEntries, false, dots, squares);
    EntrySums<2, 4>(x, shares, kDown)
        .sum(kIq1Grid, kEntries, false, dots + kEntries, squares + kEntries);
  }

  float dots[2 * kEntries];
  float squares[2 * kEntries];
};

Iq1SBlock encode_s(const float* x, const float* importance) {
  const NormalBlock normal(x, importance, true);
  BlockFit fit(8, 2, 7);
  for (int unit = 0; unit < 32; ++unit) {
    const UnitChoices all(normal, unit);
    find_hull(all.dots, all.squares, nullptr, kEntries, fit.hull(unit, 0));
    find_hull(all.dots + kEntries, all.squares + kEntries, nullptr, kEntries, fit.hull(unit, 1));
  }
  fit.solve(normal.exponent + kHalvings);
  Iq1SBlock block;
  block.d = fit.d();
  for (int run = 0; run < 8; ++run) {
    uint32_t rest = static_cast<uint32_t>(fit.scale(run) << 12 | fit.shift(run) << 15);
    for (int i = 0; i < 4; ++i) {
      const uint32_t entry = fit.code(4 * run + i);
      block.qs[4 * run + i] = static_cast<uint8_t>(entry);
      rest |= (entry >> 8) << (3 * i);
    }
    block.qh[run] = static_cast<uint16_t>(rest);
  }
  return block;
}

Iq1MBlock encode_m(const float* x, const float* importance) {
  const NormalBlock normal(x, importance, true);
  BlockFit fit(16, 1, 7);
  for (int unit = 0; unit < 32; ++unit) {
    const UnitChoices all(normal, unit);
    find_hull(all.dots, all.squares, nullptr, 2 * kEntries, fit.hull(unit));
  }
  fit.solve(normal.exponent + kHalvings);
  Iq1MBlock block = {};
  for (int i = 0; i < 4; ++i) {
    block.scales[i] = static_cast<uint16_t>(((fit.d() >> (4 * i)) & 15) << 12);
  }
  for (int run = 0; run < 16; ++run) {
    uint16_t& scales = block.scales[run / 4];
    scales = static_cast<uint16_t>(scales | (fit.scale(run) << (run % 4 * 3)));
  }
  for (int i = 0; i < 32; ++i) {
    const uint32_t code = fit.code(i);  // bit 11 says down
    block.qs[i] = static_cast<uint8_t>(code);
    block.qh[i / 2] = static_cast<uint8_t>(block.qh[i / 2] | ((code >> 8) << (i % 2 * 4)));
  }
  return block;
}

}  // namespace

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

void encode_iq1_s(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_s);
}

void encode_iq1_m(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_m);
}

}  // namespace gen::quant
