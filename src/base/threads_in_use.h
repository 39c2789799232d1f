// SPDX-License-Identifier: Apache-2.0
// Chooses how many of a pool's threads work on its next job. A thread that loses its CPU to another
// process returns a time slice later, as long as a thousand small jobs take, so on a busy machine
// one thread less is faster. See thread_pool.h, which has the clock, and docs/speed.md.
#pragma once

#include <cstdint>

namespace gen {

/// Keeps an account of the cost of waiting: the time that a caller waited for others beyond the
/// time of its own share, in which it could have run another share. The debt shrinks by a sixteenth
/// of a second each second. With a debt above kPatience one thread rests for kFirstRest, and four
/// times as long each time that resuming was too early. So small losses cost at most a sixteenth of
/// the time, and time slices a few of them a second.
/// All times are nanoseconds of one clock that never goes back.
/// Threads: one at a time.
class ThreadsInUse {
 public:
  static constexpr int64_t kPatience = 2'000'000;
  static constexpr int64_t kPaidOff = 16;  // of time, for one of debt
  static constexpr int64_t kFirstRest = 50'000'000;
  static constexpr int64_t kLongestRest = 1'000'000'000;

  /// `most` threads, all of them in use; at least 1.
  explicit ThreadsInUse(int32_t most) noexcept : most_(most), used_(most) {}

  /// Threads for a job that begins at `now`: 1 to `most`.
  [[nodiscard]] int32_t begin(int64_t now) noexcept;
  /// In that job the caller's own share took `own`, and until `now` it has waited for `waited`.
  void note(int64_t own, int64_t waited, int64_t now) noexcept;

 private:
  int32_t most_;
  int32_t used_;
  int32_t more_ = 1;  // threads to try at once, the next time
  int64_t debt_ = 0;
  int64_t noted_ = 0;  // when it had that size
  int64_t rest_ = 0;   // how long a thread rests, or did before the last trial
  int64_t next_ = 0;   // when the next one begins, and this one has lasted
  bool trying_ = false;
};

}  // namespace gen
