// SPDX-License-Identifier: Apache-2.0
// AcceptTracker: counts how many of the last draft tokens were accepted and adapts the draft
// length: longer while nearly all are accepted, shorter while few are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gen::generate {

/// Threads: one at a time.
class AcceptTracker {
 public:
  static constexpr int32_t kOutcomes = 32;  // last outcomes that are counted
  static constexpr int32_t kLongest = 8;
  static constexpr int32_t kFirstChange = 16;  // outcomes before the length changes

  explicit AcceptTracker(int32_t length) noexcept : length_(std::clamp(length, 1, kLongest)) {}

  /// The first `accepted` of `proposed` tokens were accepted. Changes the length by at most one: up
  /// if the rate is above 4/5, down if it is below 2/5.
  void record(int32_t accepted, int32_t proposed) noexcept {
    for (int32_t i = 0; i < proposed; ++i) push(i < accepted);
    if (count_ < kFirstChange) return;
    if (rate() > 0.80) length_ = std::min(length_ + 1, kLongest);
    if (rate() < 0.40) length_ = std::max(length_ - 1, 1);
  }
  /// Accepted share of the counted outcomes; 1 if there are none.
  [[nodiscard]] double rate() const noexcept {
    return count_ == 0 ? 1.0 : static_cast<double>(right_) / static_cast<double>(count_);
  }
  [[nodiscard]] int32_t count() const noexcept { return count_; }
  [[nodiscard]] int32_t length() const noexcept { return length_; }
  void clear() noexcept { count_ = right_ = next_ = 0; }

 private:
  void push(bool right) noexcept {
    bool& place = outcomes_[static_cast<size_t>(next_)];
    if (count_ == kOutcomes) {
      right_ -= static_cast<int32_t>(place);
    } else {
      ++count_;
    }
    place = right;
    right_ += static_cast<int32_t>(right);
    next_ = (next_ + 1) % kOutcomes;
  }

  std::array<bool, kOutcomes> outcomes_{};
  int32_t count_ = 0;
  int32_t right_ = 0;
  int32_t next_ = 0;
  int32_t length_;
};

}  // namespace gen::generate
