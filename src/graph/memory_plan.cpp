// SPDX-License-Identifier: Apache-2.0
// Placement by first fit over values sorted by size. Quadratic in the number of live values, which
// is a few hundred for the deepest model. See memory_plan.h.
#include "graph/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace gen::graph {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

Placement place(std::span<const Lifetime> lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].row_bytes > lifetimes[b].row_bytes;
  });

  Placement placement;
  placement.offsets.resize(lifetimes.size());
  std::vector<size_t> placed;  // by ascending offset
  for (const size_t index : order) {
    const Lifetime& life = lifetimes[index];
    size_t offset = 0;
    for (const size_t other : placed) {
      if (!alive_together(life, lifetimes[other])) continue;
      if (placement.offsets[other] >= offset + life.row_bytes) break;
      offset = std::max(offset, placement.offsets[other] + lifetimes[other].row_bytes);
    }
    placement.offsets[index] = offset;
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](size_t value, size_t other) { return value < placement.offsets[other]; });
    placed.insert(at, index);
    placement.row_bytes = std::max(placement.row_bytes, offset + life.row_bytes);
  }
  return placement;
}

}  // namespace gen::graph
