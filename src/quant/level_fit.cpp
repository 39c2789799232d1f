// SPDX-License-Identifier: Apache-2.0
// See level_fit.h.
#include "quant/level_fit.h"

#include <algorithm>
#include <cmath>

#include "quant/rounding.h"

namespace gen::quant {
namespace {

// A weight's level falls by one above this scale.
struct Fall {
  double scale;
  double dot;
  double square;
  int order;  // so that sorting has one result
};

struct Best {
  double scale = 0.0;
  double gain = 0.0;
};

// Scales of the sign `sign`. Weights are fractions of `unit`.
void walk(const float* x, const float* shares, int n, int top, double sign, double unit,
          Best& best) {
  Fall falls[512];
  int count = 0;
  for (int i = 0; i < n; ++i) {
    const double value = sign * (double{x[i]} / unit);
    const double size = std::fabs(value);
    const double share = double{shares[i]};
    for (int level = value > 0.0 ? top : 1; level > 0; --level) {
      falls[count] = {size / (level - 0.5), share * size, share * (2 * level - 1), count};
      ++count;
    }
  }
  std::sort(falls, falls + count, [](const Fall& a, const Fall& b) {
    return a.scale != b.scale ? a.scale > b.scale : a.order < b.order;
  });
  // From the largest scale, with which all levels are 0.
  double dot = 0.0;
  double square = 0.0;
  for (int i = 0; i < count; ++i) {
    dot += falls[i].dot;
    square += falls[i].square;
    if (square > 0.0 && dot * dot > best.gain * square) {
      best.gain = dot * dot / square;
      best.scale = sign * dot / square;
    }
  }
}

}  // namespace

float walk_scales(const float* x, const float* shares, int n, int top) {
  const double unit = double{largest_magnitude(x, n)};
  if (unit == 0.0) return 0.0F;
  Best best;
  walk(x, shares, n, top, 1.0, unit, best);
  if (top > 1) walk(x, shares, n, top, -1.0, unit, best);
  return static_cast<float>(best.scale * unit);
}

uint8_t nearest_level(float x, float d, int top) noexcept {
  if (d == 0.0F) return 1;
  return static_cast<uint8_t>(round_within(x / d, -1, top) + 1);
}

}  // namespace gen::quant
