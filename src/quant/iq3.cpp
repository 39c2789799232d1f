// SPDX-License-Identifier: Apache-2.0
// See iq3.h.
#include "quant/iq3.h"

#include "quant/codebook_fit.h"
#include "quant/iq3_grids.h"
#include "quant/packing.h"
#include "quant/spread.h"
#include "quant/unit_signs.h"

namespace gen::quant {
namespace {

// Two entries, of eight weights.
void put_pair(uint32_t first, uint32_t second, uint64_t signs, uint8_t* codes) noexcept {
  store_codes(spread_threes(first | (second << 12)) | (spread_bits(signs) << 3), codes);
}

constexpr float kXxsMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float kSMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};

// A unit's code: the entries of four weights each, and which of the two has a sign turned.
constexpr uint32_t kEntry = 511;
constexpr int kSecond = 9;
constexpr uint32_t kTurnsSecond = 1U << 18;

// Fits 256 weights to a codebook. `even`: the number of negative weights of eight is even.
class Iq3Fit {
 public:
  template <size_t kEntries>
  Iq3Fit(const uint16_t (&grid)[kEntries], const float* magnitudes, bool even, int halvings,
         const float* x, const float* importance)
      : grid_(grid),
        magnitudes_(magnitudes),
        even_(even),
        block_(x, importance, false),
        fit_(8, 1, 15) {
    float dots[kEntries];
    float squares[kEntries];
    for (int unit = 0; unit < 32; ++unit) {
      const UnitSigns signs(block_.x + 8 * unit);
      const bool turns = even && signs.odd();
      for (int half = 0; half < 2; ++half) {
        const EntrySums<3, 2> sums(signs.magnitudes + 4 * half, block_.shares + 8 * unit + 4 * half,
                                   magnitudes);
        sums.sum(grid, kEntries, false, dots, squares);
        find_hull(dots, squares, nullptr, kEntries, halves_[half]);
        if (!turns) continue;
        sums.sum(grid, kEntries, true, dots, squares);
        find_hull(dots, squares, nullptr, kEntries, turned_[half]);
      }
      pairs_ = 0;
      if (turns) {
        pair(turned_[0], halves_[1], 0);
        pair(halves_[0], turned_[1], kTurnsSecond);
      } else {
        pair(halves_[0], halves_[1], 0);
      }
      find_hull(dots_, squares_, codes_, pairs_, fit_.hull(unit));
    }
    fit_.solve(block_.exponent + halvings);
  }

  [[nodiscard]] const BlockFit& found() const { return fit_; }

  /// The signs of a unit that go with its entries.
  [[nodiscard]] uint32_t signs(int unit) const {
    const UnitSigns signs(block_.x + 8 * unit);
    if (!even_ || !signs.odd()) return signs.negative;
    const uint32_t code = fit_.code(unit);
    const int first = (code & kTurnsSecond) != 0 ? 4 : 0;
    float levels[8];
    for (int i = 0; i < 8; ++i) {
      const uint32_t entry = grid_[(i < 4 ? code : code >> kSecond) & kEntry];
      levels[i] = magnitudes_[(entry >> (3 * (i % 4))) & 7];
    }
    return signs.turned(block_.shares + 8 * unit, levels, first, first + 4);
  }

 private:
  // Adds what two halves make together.
  void pair(const Hull& first, const Hull& second, uint32_t turns) {
    for (int i = 0; i < first.size; ++i) {
      for (int j = 0; j < second.size; ++j) {
        dots_[pairs_] = first.choices[i].dot + second.choices[j].dot;
        squares_[pairs_] = first.choices[i].square + second.choices[j].square;
        codes_[pairs_] = first.choices[i].code | (second.choices[j].code << kSecond) | turns;
        ++pairs_;
      }
    }
  }

  static constexpr int kMostPairs = 2 * Hull::kMost * Hull::kMost;

  const uint16_t* grid_;
  const float* magnitudes_;
  bool even_;
  NormalBlock block_;
  BlockFit fit_;
  Hull halves_[2];
  Hull turned_[2];
  int pairs_ = 0;
  float dots_[kMostPairs];
  float squares_[kMostPairs];
  uint32_t codes_[kMostPairs];
};

Iq3XxsBlock encode_xxs(const float* x, const float* importance) {
  const Iq3Fit fit(kIq3XxsGrid, kXxsMagnitudes, true, 2, x, importance);
  Iq3XxsBlock block;
  block.d = fit.found().d();
  for (int run = 0; run < 8; ++run) {
    uint32_t rest = static_cast<uint32_t>(fit.found().scale(run)) << 28;
    for (int i = 0; i < 4; ++i) {
      const uint32_t code = fit.found().code(4 * run + i);
      block.qs[8 * run + 2 * i] = static_cast<uint8_t>(code & kEntry);
      block.qs[8 * run + 2 * i + 1] = static_cast<uint8_t>((code >> kSecond) & kEntry);
      rest |= (fit.signs(4 * run + i) & 127U) << (7 * i);
    }
    std::memcpy(block.rest + 2 * run, &rest, sizeof(rest));
  }
  return block;
}

Iq3SBlock encode_s(const float* x, const float* importance) {
  const Iq3Fit fit(kIq3SGrid, kSMagnitudes, false, 0, x, importance);
  Iq3SBlock block = {};
  block.d = fit.found().d();
  for (int run = 0; run < 8; ++run) {
    uint8_t& scales = block.scales[run / 2];
    scales = static_cast<uint8_t>(scales | (fit.found().scale(run) << (run % 2 * 4)));
    for (int i = 0; i < 4; ++i) {
      const uint32_t code = fit.found().code(4 * run + i);
      const uint32_t first = code & kEntry;
      const uint32_t second = (code >> kSecond) & kEntry;
      block.qs[8 * run + 2 * i] = static_cast<uint8_t>(first);
      block.qs[8 * run + 2 * i + 1] = static_cast<uint8_t>(second);
      block.qh[run] =
          static_cast<uint8_t>(block.qh[run] | (((first >> 8) | ((second >> 8) << 1)) << (2 * i)));
      block.signs[4 * run + i] = static_cast<uint8_t>(fit.signs(4 * run + i));
    }
  }
  return block;
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

void encode_iq3_xxs(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_xxs);
}

void encode_iq3_s(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_s);
}

}  // namespace gen::quant
