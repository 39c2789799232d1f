// SPDX-License-Identifier: Apache-2.0
// How much is guessed.
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
    kAlways,    // as much as drafters have
    kAdaptive,  // by AcceptTracker, and nothing for a while where too little of it is right
    kAuto,      // what pays, by measured times (draft_planner.h)
  };
  Kind kind = Kind::kAlways;
  /// While it is set, kAlways; may change at any time. Null: never.
  std::shared_ptr<const std::atomic<bool>> fixed = nullptr;
  /// Guesses are judged by rejection sampling: what is said has the model's distribution, and is
  /// not the text of the seed (sampling/acceptance.h).
  bool rejects = false;
  double fall_back = 0.4;     // of kAdaptive: below that share nothing is guessed; 0: never
  int32_t fall_back_at = 8;   // outcomes that must be known for it
  int32_t probe_tokens = 64;  // tokens after which it is tried again
  /// Seconds; null: the steady clock. For tests that shall not depend on time.
  std::function<double()> clock = nullptr;

  [[nodiscard]] Kind now() const noexcept {
    return fixed != nullptr && fixed->load(std::memory_order_relaxed) ? Kind::kAlways : kind;
  }
};

/// Classes of guesses by how sure a drafter is of them.
constexpr int32_t kDraftGrades = 5;

/// How often the guesses of each grade at each position were right, those before it being right;
/// the newest count most.
class DraftAcceptance {
 public:
  /// What is believed of each grade before anything is known, and how many guesses that is worth.
  /// Guesses behind what is new are mostly wrong in prose, and mostly right in lists of records.
  static constexpr std::array<double, kDraftGrades> kPriors = {0.7, 0.7, 0.7, 0.7, 0.4};
  static constexpr double kWeight = 6.0;

  void note(int32_t grade, int32_t position, bool right) noexcept {
    Grade& of = grades_[index(grade, kDraftGrades)];
    add(&of.positions[index(position, kPositions)], right);
    add(&of.all, right);
  }
  /// Of all positions together.
  [[nodiscard]] double chance(int32_t grade) const noexcept {
    const size_t at = index(grade, kDraftGrades);
    return grades_[at].all.chance(kPriors[at]);
  }
  /// Of the guess at a position, where `believed` is what others say.
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

/// What a job knows of its own guesses; the planner reads it, the call writes it between steps.
struct DraftRecord {
  DraftAcceptance acceptance;
  double worth = 0;      // plain steps that a right one saves
  int32_t proposed = 0;  // by the last step, not yet taken in; 0: nothing
  int32_t accepted = 0;
  std::array<uint8_t, cache::kMaxTreeRows> grades{};  // of those proposed
};

}  // namespace gen::generate
