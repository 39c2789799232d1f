// SPDX-License-Identifier: Apache-2.0
// How many tokens are drafted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "cache/sequence/kv_cache.h"

namespace gen::generate {

struct DraftPolicy {
  enum class Kind : int32_t {
    kAlways,    // as many as the drafters offer
    kAdaptive,  // by AcceptTracker; pauses when too few are accepted
    kAuto,      // what pays according to measured times (draft_planner.h)
  };
  Kind kind = Kind::kAlways;
  /// While the flag is set the policy is kAlways. It may change at any time. Null: never set.
  std::shared_ptr<const std::atomic<bool>> fixed = nullptr;
  /// Drafts are verified by rejection sampling: the output has the model's distribution but differs
  /// from the text that the seed gives without drafts (sampling/acceptance.h).
  bool rejects = false;
  double fall_back = 0.4;     // kAdaptive: accepted share below which drafting pauses; 0: never
  int32_t fall_back_at = 8;   // outcomes needed before it can pause
  int32_t probe_tokens = 64;  // tokens after which it tries again
  /// Time in seconds; null: the steady clock. Tests use it to be independent of time.
  std::function<double()> clock = nullptr;

  [[nodiscard]] Kind now() const noexcept {
    return fixed != nullptr && fixed->load(std::memory_order_relaxed) ? Kind::kAlways : kind;
  }
};

/// Number of confidence classes that drafters sort their tokens into.
constexpr int32_t kDraftGrades = 5;

/// Acceptance rate of draft tokens by grade and position, given that all before them were accepted.
/// Recent tokens weigh most.
class DraftAcceptance {
 public:
  /// Prior rate of each grade, and the number of observations that it counts as. Tokens drafted
  /// after a gap are mostly wrong in prose and mostly right in lists of records.
  static constexpr std::array<double, kDraftGrades> kPriors = {0.7, 0.7, 0.7, 0.7, 0.4};
  static constexpr double kWeight = 6.0;

  void note(int32_t grade, int32_t position, bool right) noexcept {
    Grade& of = grades_[index(grade, kDraftGrades)];
    add(&of.positions[index(position, kPositions)], right);
    add(&of.all, right);
  }
  /// Rate over all positions.
  [[nodiscard]] double chance(int32_t grade) const noexcept {
    const size_t at = index(grade, kDraftGrades);
    return grades_[at].all.chance(kPriors[at]);
  }
  /// Rate at one position; `believed` is the prior.
  [[nodiscard]] double chance(int32_t grade, int32_t position, double believed) const noexcept {
    const Grade& of = grades_[index(grade, kDraftGrades)];
    return of.positions[index(position, kPositions)].chance(believed);
  }

 private:
  static constexpr int32_t kPositions = cache::kMaxTreeRows;
  static constexpr double kDecay = 0.99;
  struct Share {
    [[nodiscard]] double chance(double believed) const noexcept {
      return (right + kWeight * believed) / (tries + kWeight);
    }
    double tries = 0;
    double right = 0;
  };
  struct Grade {
    std::array<Share, kPositions> positions{};
    Share all;
  };
  static size_t index(int32_t at, int32_t n) noexcept {
    return static_cast<size_t>(std::clamp(at, 0, n - 1));
  }
  static void add(Share* at, bool right) noexcept {
    at->tries = at->tries * kDecay + 1;
    at->right = at->right * kDecay + (right ? 1 : 0);
  }

  std::array<Grade, kDraftGrades> grades_{};
};

/// Statistics of one job's drafts. The call writes them between steps, the planner reads them.
struct DraftRecord {
  DraftAcceptance acceptance;
  double worth = 0;      // plain steps that an accepted token saves
  int32_t proposed = 0;  // tokens that the last step verified and the planner has not seen; 0: none
  int32_t accepted = 0;
  std::array<uint8_t, cache::kMaxTreeRows> grades{};  // grades of the proposed tokens
};

}  // namespace gen::generate
