// SPDX-License-Identifier: Apache-2.0
// The common part of top-p and typical-p: in some order of merit, keep as many candidates as are
// needed for a wanted mass. Only those near the border are sorted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Keeps the shortest run of best candidates whose weights sum to `wanted`, at least one, all if
/// they do not reach it; wanted > 0. `merit(candidate)` are the bits of a double, or their
/// complement, larger is better; ties are broken by more_probable(). Keeps the order of
/// `candidates`. `border` is overwritten. Sums are taken by bucket, and within a bucket by token:
/// the same in every standard library.
template <typename Merit>
void keep_best_mass(double wanted, const Merit& merit, std::vector<Candidate>* candidates,
                    std::vector<Candidate>* border) {
  // Positive doubles order as their bits do. Buckets share the 64 octaves next to the best; the
  // last bucket takes everything beyond.
  constexpr uint64_t kBuckets = 2048;
  constexpr uint64_t kOctaves = 64;
  constexpr int kShift = 52 - 5;  // 32 buckets an octave
  static_assert(kBuckets == kOctaves << 5);
  if (candidates->empty()) return;
  uint64_t best = 0;
  for (const Candidate& one : *candidates) best = std::max(best, merit(one));
  const auto bucket_of = [&](const Candidate& one) {
    return static_cast<size_t>(std::min((best - merit(one)) >> kShift, kBuckets - 1));
  };

  std::array<double, kBuckets> mass{};
  for (const Candidate& one : *candidates) mass[bucket_of(one)] += one.weight;
  size_t last = 0;
  double above = 0.0;  // of all buckets before `last`
  while (last + 1 < kBuckets && above + mass[last] < wanted) above += mass[last++];

  border->clear();
  for (const Candidate& one : *candidates) {
    if (bucket_of(one) == last) border->push_back(one);
  }
  const auto better = [&](const Candidate& a, const Candidate& b) {
    const uint64_t x = merit(a);
    const uint64_t y = merit(b);
    return x != y ? x > y : more_probable(a, b);
  };
  // Rows of equal logits, the worst case for sorting, are in order already.
  if (!std::is_sorted(border->begin(), border->end(), better)) {
    std::sort(border->begin(), border->end(), better);
  }
  size_t kept = 0;
  while (kept < border->size() && above < wanted) above += (*border)[kept++].weight;
  const Candidate worst = kept > 0 ? (*border)[kept - 1] : Candidate();
  std::erase_if(*candidates, [&](const Candidate& one) {
    const size_t bucket = bucket_of(one);
    return bucket > last || (bucket == last && better(worst, one));
  });
}

}  // namespace gen::sampling
