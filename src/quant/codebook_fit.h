// SPDX-License-Identifier: Apache-2.0
// How encoders of types with codebooks find entries and scales. A unit is eight weights that are
// encoded together. With entry e and scale s its squared error is a constant less 2 s dot[e], plus
// s^2 square[e], where dot sums share * weight * level and square sums share * level^2. So for all
// scales the best entries are the corners of a convex hull of the points (dot, square), and they
// are found without a search for each scale. Read next: iq2.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::quant {

/// A way to encode a unit.
struct Choice {
  float dot = 0.0F;
  float square = 0.0F;
  uint32_t code = 0;  // the caller's
};

/// The choices that are best for some scale: choice i from the scale `from[i]` on.
struct Hull {
  static constexpr int kMost = 40;  // corners beyond are left out; a codebook has about 15
  int size = 0;
  float from[kMost];
  Choice choices[kMost];

  /// The best choice for a scale.
  [[nodiscard]] const Choice& at(float scale) const noexcept {
    int i = 0;
    while (i + 1 < size && from[i + 1] <= scale) ++i;
    return choices[i];
  }
};

/// Of n choices, at most 4096; their codes are `codes`, or their indices if that is null. Of equal
/// ones the first counts.
void find_hull(const float* dots, const float* squares, const uint32_t* codes, int n, Hull& hull);

/// The sums of all ways to encode `kHalf` weights with levels of kBits bits, indexed by the codes,
/// the first weight's lowest.
template <int kBits, int kHalf>
struct HalfSums {
  static constexpr size_t kSize = size_t{1} << (kBits * kHalf);
  float dot[kSize];
  float square[kSize];
  float least[kSize];  // the least of share * weight * level

  HalfSums(const float* x, const float* shares, const float* levels) noexcept {
    dot[0] = 0.0F;
    square[0] = 0.0F;
    least[0] = 3.0e38F;
    for (int i = 0; i < kHalf; ++i) {
      const int below = 1 << (kBits * i);
      for (int c = (1 << kBits) - 1; c >= 0; --c) {
        const float product = shares[i] * x[i] * levels[c];
        const float squared = shares[i] * (levels[c] * levels[c]);
        for (int j = 0; j < below; ++j) {
          const int to = (c << (kBits * i)) | j;
          dot[to] = dot[j] + product;
          square[to] = square[j] + squared;
          least[to] = product < least[j] ? product : least[j];
        }
      }
    }
  }
};

/// The same of 2 * kHalf weights for the entries of a codebook.
template <int kBits, int kHalf>
class EntrySums {
 public:
  EntrySums(const float* x, const float* shares, const float* levels) noexcept
      : low_(x, shares, levels), high_(x + kHalf, shares + kHalf, levels) {}

  /// With `flip` the weight that loses least by it has the wrong sign. Weights are magnitudes then.
  void sum(const uint16_t* entries, int n, bool flip, float* dots, float* squares) const noexcept {
    for (int e = 0; e < n; ++e) {
      const size_t low = entries[e] & (HalfSums<kBits, kHalf>::kSize - 1);
      const size_t high = size_t{entries[e]} >> (kBits * kHalf);
      dots[e] = low_.dot[low] + high_.dot[high];
      squares[e] = low_.square[low] + high_.square[high];
      if (flip) {
        dots[e] -=
            2.0F * (low_.least[low] < high_.least[high] ? low_.least[low] : high_.least[high]);
      }
    }
  }

 private:
  HalfSums<kBits, kHalf> low_;
  HalfSums<kBits, kHalf> high_;
};

/// 256 weights as fractions of a power of two that is at least the largest magnitude, and what they
/// count: shares_by_size() or shares_of().
struct NormalBlock {
  float x[256];
  float shares[256];
  int exponent = 0;  // x times 2^exponent are the weights

  NormalBlock(const float* weights, const float* importance, bool by_size) noexcept;
};

/// Finds the scales of a block whose runs have odd scales, 1 to 2 * top + 1, of one d: d of the
/// block, the scale of each run and a choice for each unit.
class BlockFit {
 public:
  /// `shifts` hulls for each unit are alternatives that all units of a run choose together.
  BlockFit(int runs, int shifts, int top) noexcept : runs_(runs), shifts_(shifts), top_(top) {}

  /// To be filled before solve(), for unit 0 to 31 of the block.
  Hull& hull(int unit, int shift = 0) noexcept { return hulls_[unit][shift]; }

  /// `exponent`: d is stored times 2^exponent. It is 0 for a block of zeros.
  void solve(int exponent) noexcept;

  [[nodiscard]] uint16_t d() const noexcept { return best_.bits; }  // binary16
  /// In [0, top]: s of the scale 2 * s + 1.
  [[nodiscard]] int scale(int run) const noexcept { return best_.scales[run]; }
  [[nodiscard]] int shift(int run) const noexcept { return best_.shifts[run]; }
  /// The code of a unit's choice.
  [[nodiscard]] uint32_t code(int unit) const noexcept;

 private:
  // The block with one d.
  struct Trial {
    uint16_t bits = 0;
    double d = 0.0;
    double gain = 0.0;    // what the squared error falls by
    double wanted = 0.0;  // d that is best for the codes
    uint8_t scales[16] = {};
    uint8_t shifts[16] = {};
  };
  // A run with one scale.
  struct Sums {
    double dot = 0.0;
    double square = 0.0;
    double gain = 0.0;
    int shift = 0;
  };
  [[nodiscard]] Sums sums_of(int run, double scale) const noexcept;
  [[nodiscard]] double best_scale(int run) const noexcept;
  [[nodiscard]] Trial trial(double d, int exponent) const noexcept;

  int runs_;
  int shifts_;
  int top_;
  double wanted_[16] = {};  // scales of the runs
  Trial best_;
  Hull hulls_[32][2];
};

}  // namespace gen::quant
