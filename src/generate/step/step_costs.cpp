// SPDX-License-Identifier: Apache-2.0
// See step_costs.h.
#include "generate/step/step_costs.h"

#include <algorithm>
#include <bit>

namespace gen::generate {
size_t StepCosts::bucket(int32_t rows) noexcept {
  const auto n = static_cast<uint32_t>(std::max(rows, 1));
  if (n <= 8) return n - 1;
  const auto octave = static_cast<uint32_t>(std::bit_width(n - 1));  // 9 to 16 share 4 buckets
  const uint32_t quarter = (n - 1 - (1U << (octave - 1))) >> (octave - 3);
  return std::min<size_t>(8 + (octave - 4) * size_t{4} + quarter, kBuckets - 1);
}

void StepCosts::note(int32_t rows, double seconds) noexcept {
  if (!is_time(seconds)) return;
  most_ = std::max(most_, rows);
  Bucket& at = buckets_[bucket(rows)];
  if (at.is_settled()) {
    at.rows += 0.125 * (rows - at.rows);
    at.seconds = towards(at.seconds, seconds);
    return;
  }
  if (at.passes == 0 || seconds < at.seconds) {
    at.rows = rows;
    at.seconds = seconds;
  }
  ++at.passes;
  at.spent += seconds;
}

double StepCosts::seconds(int32_t rows) const noexcept {
  const auto wanted = static_cast<double>(rows);
  Bucket above;
  for (auto at = buckets_.rbegin(); at != buckets_.rend(); ++at) {
    if (at->seconds == 0) continue;
    const double seconds = above.seconds == 0 ? at->seconds : std::min(at->seconds, above.seconds);
    if (at->rows <= wanted) {
      if (above.seconds == 0) return seconds + beyond(*at, wanted - at->rows);
      const double share = (wanted - at->rows) / (above.rows - at->rows);
      return seconds + share * (above.seconds - seconds);
    }
    above.rows = at->rows;
    above.seconds = seconds;
  }
  return above.seconds;
}

double StepCosts::beyond(const Bucket& most, double rows) const noexcept {
  if (most.rows < kFew) return 0;
  const auto least = std::find_if(buckets_.begin(), buckets_.end(),
                                  [](const Bucket& at) { return at.seconds != 0; });
  if (least->rows >= most.rows || least->seconds >= most.seconds) return 0;
  return kBeyond * rows * (most.seconds - least->seconds) / (most.rows - least->rows);
}

}  // namespace gen::generate
