// SPDX-License-Identifier: Apache-2.0
// See codebook_fit.h. Sums are added in the order of the weights, so that results are the same on
// every machine.
#include "quant/codebook_fit.h"

#include <algorithm>
#include <cmath>

#include "quant/rounding.h"
#include "quant/shares.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kMostChoices = 4096;

// Corners between two known ones: the choice that gains most at the scale at which those are equal
// is a corner, unless none gains, and divides the rest.
class HullFinder {
 public:
  HullFinder(const float* dots, const float* squares, const uint32_t* codes, Hull& hull)
      : dots_(dots), squares_(squares), codes_(codes), hull_(hull) {}

  void find(int n) {
    int first = 0;  // for the least scales
    int last = 0;   // for the largest
    for (int e = 1; e < n; ++e) {
      if (dots_[e] > dots_[first] || (dots_[e] == dots_[first] && squares_[e] < squares_[first])) {
        first = e;
      }
      if (squares_[e] < squares_[last] ||
          (squares_[e] == squares_[last] && dots_[e] > dots_[last])) {
        last = e;
      }
    }
    hull_.size = 0;
    add(first, 0.0F);
    if (!(squares_[first] > squares_[last]) || !(dots_[first] > dots_[last])) return;
    for (int e = 0; e < n; ++e) rest_[e] = static_cast<uint16_t>(e);
    divide(first, last, rest_, n);
  }

 private:
  void add(int e, float from) {
    if (hull_.size == Hull::kMost) return;
    hull_.from[hull_.size] = from;
    hull_.choices[hull_.size] = {dots_[e], squares_[e],
                                 codes_ != nullptr ? codes_[e] : static_cast<uint32_t>(e)};
    ++hull_.size;
  }

  // The line through two points: those that gain more than both at their scale are below.
  struct Line {
    float scale;
    float limit;
  };
  [[nodiscard]] Line between(int a, int b) const {
    const float scale = 2.0F * ((dots_[a] - dots_[b]) / (squares_[a] - squares_[b]));
    const float size = scale * squares_[a] + 2.0F * std::fabs(dots_[a]);
    return {scale, (scale * squares_[a] - 2.0F * dots_[a]) - 1.0e-6F * size};
  }
  [[nodiscard]] float cost(int e, float scale) const {
    return scale * squares_[e] - 2.0F * dots_[e];
  }

  void divide(int a, int b, uint16_t* rest, int n) {
    const Line line = between(a, b);
    int least = -1;
    float least_cost = line.limit;
    for (int i = 0; i < n; ++i) {
      const float here = cost(rest[i], line.scale);
      if (here < least_cost) {
        least_cost = here;
        least = rest[i];
      }
    }
    if (least < 0 || !(squares_[a] > squares_[least]) || !(squares_[least] > squares_[b])) {
      add(b, line.scale);
      return;
    }
    // Those below one of the two new lines, in their order.
    const Line left = between(a, least);
    const Line right = between(least, b);
    int lefts = 0;
    int rights = 0;
    for (int i = 0; i < n; ++i) {
      const uint16_t e = rest[i];
      if (cost(e, left.scale) < left.limit) {
        rest[lefts++] = e;
      } else if (cost(e, right.scale) < right.limit) {
        moved_[rights++] = e;
      }
    }
    std::copy_n(moved_, rights, rest + lefts);
    divide(a, least, rest, lefts);
    divide(least, b, rest + lefts, rights);
  }

  const float* dots_;
  const float* squares_;
  const uint32_t* codes_;
  Hull& hull_;
  uint16_t rest_[kMostChoices];
  uint16_t moved_[kMostChoices];
};

}  // namespace

void find_hull(const float* dots, const float* squares, const uint32_t* codes, int n, Hull& hull) {
  HullFinder(dots, squares, codes, hull).find(n);
}

NormalBlock::NormalBlock(const float* weights, const float* importance, bool by_size) noexcept {
  const float largest = largest_magnitude(weights, 256);
  exponent = largest > 0.0F ? std::ilogb(largest) + 1 : 0;
  for (int i = 0; i < 256; ++i) x[i] = std::ldexp(weights[i], -exponent);
  if (by_size) {
    shares_by_size(x, importance, 256, shares);
  } else {
    shares_of(importance, 256, shares);
  }
}

BlockFit::Sums BlockFit::sums_of(int run, double scale) const noexcept {
  const int units = 32 / runs_;
  Sums best;
  for (int shift = 0; shift < shifts_; ++shift) {
    Sums sums;
    sums.shift = shift;
    for (int unit = run * units; unit < (run + 1) * units; ++unit) {
      const Choice& choice = hulls_[unit][shift].at(static_cast<float>(scale));
      sums.dot += double{choice.dot};
      sums.square += double{choice.square};
    }
    sums.gain = scale * (2.0 * sums.dot - scale * sums.square);
    if (shift == 0 || sums.gain > best.gain) best = sums;
  }
  return best;
}

// Walks through all scales: between two corners the choices stay, and their best scale is known.
double BlockFit::best_scale(int run) const noexcept {
  const int units = 32 / runs_;
  double best = 0.0;
  double most = 0.0;
  for (int shift = 0; shift < shifts_; ++shift) {
    int at[4] = {};
    for (;;) {
      double dot = 0.0;
      double square = 0.0;
      int next = -1;
      float from = 0.0F;
      for (int u = 0; u < units; ++u) {
        const Hull& hull = hulls_[run * units + u][shift];
        dot += double{hull.choices[at[u]].dot};
        square += double{hull.choices[at[u]].square};
        if (at[u] + 1 < hull.size && (next < 0 || hull.from[at[u] + 1] < from)) {
          next = u;
          from = hull.from[at[u] + 1];
        }
      }
      if (dot > 0.0 && dot * dot > most * square) {
        most = dot * dot / square;
        best = dot / square;
      }
      if (next < 0) break;
      ++at[next];
    }
  }
  return best;
}

BlockFit::Trial BlockFit::trial(double d, int exponent) const noexcept {
  Trial trial;
  trial.bits = scale_to_f16(static_cast<float>(std::ldexp(d, exponent)));
  trial.d = std::ldexp(double{f16_to_f32(trial.bits)}, -exponent);
  if (trial.d == 0.0) return trial;
  double dot = 0.0;
  double square = 0.0;
  for (int run = 0; run < runs_; ++run) {
    const double ratio = std::min(wanted_[run] / trial.d, 2.0 * top_ + 1.0);
    const int near = std::clamp(static_cast<int>(ratio / 2.0), 0, top_);
    Sums best;
    int scale = -1;
    for (int s = std::max(near - 1, 0); s <= std::min(near + 1, top_); ++s) {
      const Sums sums = sums_of(run, trial.d * (2 * s + 1));
      if (scale >= 0 && !(sums.gain > best.gain)) continue;
      best = sums;
      scale = s;
    }
    trial.scales[run] = static_cast<uint8_t>(scale);
    trial.shifts[run] = static_cast<uint8_t>(best.shift);
    trial.gain += best.gain;
    dot += (2 * scale + 1) * best.dot;
    square += (2 * scale + 1) * ((2 * scale + 1) * best.square);
  }
  trial.wanted = square > 0.0 ? dot / square : 0.0;
  return trial;
}

void BlockFit::solve(int exponent) noexcept {
  constexpr int kRefits = 3;
  best_ = {};
  double largest = 0.0;
  for (int run = 0; run < runs_; ++run) {
    wanted_[run] = best_scale(run);
    largest = std::max(largest, wanted_[run]);
  }
  if (largest == 0.0) return;
  // The run of the largest scale may have any of the scales, not only the last.
  bool any = false;
  for (int s = top_; s >= 0; --s) {
    double d = largest / (2 * s + 1);
    for (int pass = 0; pass <= kRefits && d > 0.0; ++pass) {
      const Trial here = trial(d, exponent);
      const bool better = here.d != 0.0 && (!any || here.gain > best_.gain);
      if (better) {
        best_ = here;
        any = true;
      }
      if (pass > 0 && !better) break;
      d = here.wanted;
    }
  }
}

uint32_t BlockFit::code(int unit) const noexcept {
  const int run = unit / (32 / runs_);
  const double scale = best_.d * (2 * best_.scales[run] + 1);
  return hulls_[unit][best_.shifts[run]].at(static_cast<float>(scale)).code;
}

}  // namespace gen::quant
