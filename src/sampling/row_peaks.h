// SPDX-License-Identifier: Apache-2.0
// RowPeaks: the largest logit of each block of a row, computed in one pass. Afterwards the largest
// logit of the row, the k largest and all above a bar are found by scanning only a few blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/row_peak.h"
#include "sampling/candidates.h"

namespace gen::sampling {

/// Belongs to one row at a time, the last one given to read(); the other calls must get the same
/// row. Threads: one at a time.
class RowPeaks {
 public:
  static constexpr size_t kBlock = kPeakBlock;

  /// Makes the peaks of `row`. Returns the first index of a NaN or +inf, or row.size().
  size_t read(std::span<const float> row);

  /// Marks row[token] as changed; call refresh() afterwards.
  void touch(size_t token) noexcept { stale_[token / kBlock] = 1; }
  /// Scans the changed blocks again.
  void refresh(std::span<const float> row) noexcept;

  /// Largest value; -inf for an empty row.
  [[nodiscard]] float max() const noexcept;
  /// First index that holds `value`, which is the value of max().
  [[nodiscard]] size_t first_index_of(std::span<const float> row, float value) const noexcept;
  /// The k-th largest value, counting ties separately; k in [1, row.size()].
  [[nodiscard]] float kth_largest(std::span<const float> row, size_t k,
                                  std::vector<float>* scratch) const;
  /// Fills `candidates`, ascending by token, with values above -inf and at least `bar`. Weights are
  /// left 0.
  void collect(std::span<const float> row, float bar, std::vector<Candidate>* candidates) const;

 private:
  std::vector<float> peaks_;
  std::vector<uint8_t> stale_;
};

}  // namespace gen::sampling
