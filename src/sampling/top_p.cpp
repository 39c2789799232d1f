// SPDX-License-Identifier: Apache-2.0
// See top_p.h.
#include "sampling/top_p.h"

#include <algorithm>
#include <cstddef>

namespace gen::sampling {

void apply_top_p(double p, std::vector<Candidate>* candidates) {
  double total = 0.0;
  for (const Candidate& one : *candidates) total += one.weight;
  const double wanted = p * total;

  // All candidates below this weigh less than the share that may go, so they need no sorting.
  const double least = (total - wanted) / static_cast<double>(candidates->size());
  std::erase_if(*candidates, [&](const Candidate& one) { return one.weight < least; });

  // Sort no more than is needed: the best few first, then four times as many.
  constexpr size_t kFirst = 64;
  const size_t size = candidates->size();
  const auto at = [&](size_t i) { return candidates->begin() + static_cast<std::ptrdiff_t>(i); };
  size_t kept = 0;
  size_t sorted = 0;
  double mass = 0.0;
  while (kept < size && (kept == 0 || mass < wanted)) {
    if (kept == sorted) {
      const size_t next = std::min(size, std::max(kFirst, 4 * sorted));
      if (next < size) std::nth_element(at(sorted), at(next), at(size), more_probable);
      std::sort(at(sorted), at(next), more_probable);
      sorted = next;
    }
    mass += (*candidates)[kept].weight;
    ++kept;
  }
  candidates->erase(at(kept), at(size));
  std::sort(candidates->begin(), candidates->end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

void apply_min_p(double min_p, std::vector<Candidate>* candidates) {
  // The best weighs 1, see candidates.h.
  std::erase_if(*candidates, [&](const Candidate& one) { return one.weight < min_p; });
}

}  // namespace gen::sampling
