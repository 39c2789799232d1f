// SPDX-License-Identifier: Apache-2.0
// StepCosts: what a pass of the model takes by its rows, as measured lately.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gen::generate {

/// How far an estimate of a time goes towards a new measurement. Disturbances make single ones
/// longer, the first ones above all, which make room for what comes; nothing makes them shorter.
[[nodiscard]] constexpr double towards(double estimate, double measured) noexcept {
  constexpr double kUp = 0.125;
  constexpr double kDown = 0.5;
  constexpr double kOutlier = 2.0;  // times what is known, at most
  if (measured < estimate) return estimate + kDown * (measured - estimate);
  const double most = kOutlier * estimate;
  return estimate + kUp * ((measured < most ? measured : most) - estimate);
}

/// Whether a clock that goes well can have measured that; what else it says, sums and means would
/// never lose again.
[[nodiscard]] constexpr bool is_time(double seconds) noexcept {
  constexpr double kMost = 1e6;
  return seconds > 0 && seconds <= kMost;
}

/// Threads: one at a time.
class StepCosts {
 public:
  /// A pass of `rows` rows took so long. Single passes that take far longer, as when the machine
  /// does something else, count little.
  void note(int32_t rows, double seconds) noexcept;
  /// Whether passes of about so many rows have been measured often enough; and the most rows of any
  /// that has been measured.
  [[nodiscard]] bool knows(int32_t rows) const noexcept {
    return buckets_[bucket(rows)].is_settled();
  }
  [[nodiscard]] int32_t max_known() const noexcept { return most_; }
  /// What one would take; never more than one of more rows, as disturbances only make passes
  /// longer. Numbers that have not been measured lie between those that have. Above them a few rows
  /// add nothing, and more add half of what a row has added so far: so they are tried where they
  /// may pay, and then known. 0 where nothing is known.
  [[nodiscard]] double seconds(int32_t rows) const noexcept;

 private:
  // The first passes make room for what comes, in memory and in the processor's caches: the
  // shortest of them counts. They are more than one, and where they are short, several.
  static constexpr int32_t kFirst = 8;
  static constexpr double kFirstSeconds = 0.01;
  static constexpr double kFew = 8.0;  // kernels of many rows begin somewhere below
  static constexpr double kBeyond = 0.5;
  // Each number up to 8, then 4 for each doubling.
  static constexpr size_t kBuckets = 40;
  static size_t bucket(int32_t rows) noexcept;
  struct Bucket {
    double rows = 0;     // mean of those that were measured
    double seconds = 0;  // 0: nothing is known
    int32_t passes = 0;  // that were measured, up to kFirst
    double spent = 0;    // on them
    [[nodiscard]] bool is_settled() const noexcept {
      return passes >= kFirst || (passes > 1 && spent >= kFirstSeconds);
    }
  };
  /// So many more rows than the most that have been measured add so many seconds.
  [[nodiscard]] double beyond(const Bucket& most, double rows) const noexcept;
  std::array<Bucket, kBuckets> buckets_{};
  int32_t most_ = 0;
};

}  // namespace gen::generate
