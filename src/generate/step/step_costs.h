// SPDX-License-Identifier: Apache-2.0
// StepCosts: recently measured duration of a pass of the model by its number of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gen::generate {

/// Moves an estimate of a duration towards a new measurement. Disturbances only make single passes
/// longer, above all the first ones, which allocate memory.
[[nodiscard]] constexpr double towards(double estimate, double measured) noexcept {
  constexpr double kUp = 0.125;
  constexpr double kDown = 0.5;
  constexpr double kOutlier = 2.0;  // limit on a measurement, in multiples of the estimate
  if (measured < estimate) return estimate + kDown * (measured - estimate);
  const double most = kOutlier * estimate;
  return estimate + kUp * ((measured < most ? measured : most) - estimate);
}

/// Whether a working clock can have measured this. Any other value would spoil sums and means for
/// good.
[[nodiscard]] constexpr bool is_time(double seconds) noexcept {
  constexpr double kMost = 1e6;
  return seconds > 0 && seconds <= kMost;
}

/// Threads: one at a time.
class StepCosts {
 public:
  /// Records a pass of `rows` rows. Single passes that take far longer, because of other load,
  /// weigh little.
  void note(int32_t rows, double seconds) noexcept;
  /// Whether passes of about this many rows were measured often enough, and the largest number of
  /// rows that was measured.
  [[nodiscard]] bool knows(int32_t rows) const noexcept {
    return buckets_[bucket(rows)].is_settled();
  }
  [[nodiscard]] int32_t max_known() const noexcept { return most_; }
  /// Estimated duration of a pass; never more than that of a larger one, since disturbances only
  /// add time. Row counts between measured ones are interpolated. Above the largest measured count
  /// a few rows cost nothing, and further rows half of the average row so far: so larger counts are
  /// tried if they may pay, and then measured. 0 if nothing was measured.
  [[nodiscard]] double seconds(int32_t rows) const noexcept;

 private:
  // The first passes allocate memory and warm up the processor's caches, so the shortest of them
  // counts. There are at least two, more if they are short.
  static constexpr int32_t kFirst = 8;
  static constexpr double kFirstSeconds = 0.01;
  static constexpr double kFew = 8.0;  // somewhere below, kernels for many rows take over
  static constexpr double kBeyond = 0.5;
  // One bucket for each number up to 8, then 4 per doubling.
  static constexpr size_t kBuckets = 40;
  static size_t bucket(int32_t rows) noexcept;
  struct Bucket {
    double rows = 0;     // mean number of rows of the measured passes
    double seconds = 0;  // 0: not measured
    int32_t passes = 0;  // number of measured passes, up to kFirst
    double spent = 0;    // total seconds of these
    [[nodiscard]] bool is_settled() const noexcept {
      return passes >= kFirst || (passes > 1 && spent >= kFirstSeconds);
    }
  };
  /// Seconds that `rows` rows beyond the largest measured count add.
  [[nodiscard]] double beyond(const Bucket& most, double rows) const noexcept;
  std::array<Bucket, kBuckets> buckets_{};
  int32_t most_ = 0;
};

}  // namespace gen::generate
