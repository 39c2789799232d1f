// SPDX-License-Identifier: Apache-2.0
// See iq2.h.
#include "quant/iq2.h"

#include "quant/codebook_fit.h"
#include "quant/iq2_grids.h"
#include "quant/packing.h"
#include "quant/spread.h"
#include "quant/unit_signs.h"

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

constexpr int kHalvings = 3;
constexpr float kMagnitudes[4] = {8.0F, 25.0F, 43.0F, 0.0F};  // no entry has the last

// Fits 256 weights to a codebook. `even`: the number of negative weights of eight is even.
class Iq2Fit {
 public:
  template <size_t kEntries>
  Iq2Fit(const uint16_t (&grid)[kEntries], int runs, bool even, const float* x,
         const float* importance)
      : grid_(grid), even_(even), block_(x, importance, true), fit_(runs, 1, 15) {
    float dots[kEntries];
    float squares[kEntries];
    for (int unit = 0; unit < 32; ++unit) {
      const float* shares = block_.shares + 8 * unit;
      const UnitSigns signs(block_.x + 8 * unit);
      const EntrySums<2, 4> sums(signs.magnitudes, shares, kMagnitudes);
      sums.sum(grid, kEntries, even && signs.odd(), dots, squares);
      find_hull(dots, squares, nullptr, kEntries, fit_.hull(unit));
    }
    fit_.solve(block_.exponent + kHalvings);
  }

  [[nodiscard]] const BlockFit& found() const { return fit_; }

  /// The signs of a unit that go with its entry.
  [[nodiscard]] uint32_t signs(int unit) const {
    const UnitSigns signs(block_.x + 8 * unit);
    if (!even_ || !signs.odd()) return signs.negative;
    float levels[8];
    const uint16_t entry = grid_[fit_.code(unit)];
    for (int i = 0; i < 8; ++i) levels[i] = kMagnitudes[(entry >> (2 * i)) & 3];
    return signs.turned(block_.shares + 8 * unit, levels, 0, 8);
  }

 private:
  const uint16_t* grid_;
  bool even_;
  NormalBlock block_;
  BlockFit fit_;
};

void pack_half_scales(const BlockFit& fit, uint8_t* halves) {
  for (int i = 0; i < 8; ++i) {
    halves[i] = static_cast<uint8_t>(fit.scale(2 * i) | (fit.scale(2 * i + 1) << 4));
  }
}

Iq2XxsBlock encode_xxs(const float* x, const float* importance) {
  const Iq2Fit fit(kIq2XxsGrid, 8, true, x, importance);
  Iq2XxsBlock block;
  block.d = fit.found().d();
  for (int run = 0; run < 8; ++run) {
    uint8_t indices[4];
    uint32_t rest = static_cast<uint32_t>(fit.found().scale(run)) << 28;
    for (int i = 0; i < 4; ++i) {
      indices[i] = static_cast<uint8_t>(fit.found().code(4 * run + i));
      rest |= (fit.signs(4 * run + i) & 127U) << (7 * i);
    }
    std::memcpy(block.words + 4 * run, indices, sizeof(indices));
    std::memcpy(block.words + 4 * run + 2, &rest, sizeof(rest));
  }
  return block;
}

Iq2XsBlock encode_xs(const float* x, const float* importance) {
  const Iq2Fit fit(kIq2XsGrid, 16, true, x, importance);
  Iq2XsBlock block;
  block.d = fit.found().d();
  pack_half_scales(fit.found(), block.scales);
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = static_cast<uint16_t>(fit.found().code(i) | ((fit.signs(i) & 127U) << 9));
  }
  return block;
}

Iq2SBlock encode_s(const float* x, const float* importance) {
  const Iq2Fit fit(kIq2SGrid, 16, false, x, importance);
  Iq2SBlock block = {};
  block.d = fit.found().d();
  pack_half_scales(fit.found(), block.scales);
  for (int i = 0; i < 32; ++i) {
    const uint32_t entry = fit.found().code(i);
    block.qs[i] = static_cast<uint8_t>(entry);
    block.signs[i] = static_cast<uint8_t>(fit.signs(i));
    block.qh[i / 4] = static_cast<uint8_t>(block.qh[i / 4] | ((entry >> 8) << (i % 4 * 2)));
  }
  return block;
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

void encode_iq2_xxs(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_xxs);
}

void encode_iq2_xs(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_xs);
}

void encode_iq2_s(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_s);
}

}  // namespace gen::quant
