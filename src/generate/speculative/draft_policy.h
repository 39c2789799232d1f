// SPDX-License-Identifier: Apache-2.0
// How much is guessed.
#pragma once

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

/// How often the guesses at each position were right, those before it being right; the newest count
/// most.
class AcceptanceByPosition {
 public:
  /// What is believed before anything is known, and how many guesses that is worth.
  static constexpr double kPrior = 0.7;
  static constexpr double kWeight = 6.0;

  void note(int32_t proposed, int32_t accepted) noexcept {
    for (int32_t i = 0; i < proposed && i <= accepted && i < kPositions; ++i) {
      add(&positions_[static_cast<size_t>(i)], i < accepted);
      add(&all_, i < accepted);
    }
  }
  /// Of all positions together.
  [[nodiscard]] double chance() const noexcept {
    return (all_.right + kWeight * kPrior) / (all_.tries + kWeight);
  }
  /// Of the guess at a position, where `believed` is what others say.
  [[nodiscard]] double chance(int32_t position, double believed) const noexcept {
    const Position& at =
        positions_[static_cast<size_t>(position < kPositions ? position : kPositions - 1)];
    return (at.right + kWeight * believed) / (at.tries + kWeight);
  }

 private:
  static constexpr int32_t kPositions = cache::kMostTreeRows;
  static constexpr double kDecay = 0.99;
  struct Position {
    double tries = 0;
    double right = 0;
  };
  static void add(Position* at, bool right) noexcept {
    at->tries = at->tries * kDecay + 1;
    at->right = at->right * kDecay + (right ? 1 : 0);
  }

  std::array<Position, kPositions> positions_{};
  Position all_;
};

/// What a job knows of its own guesses; the planner reads it, the call writes it between steps.
struct DraftRecord {
  AcceptanceByPosition acceptance;
  int32_t proposed = 0;  // by the last step, not yet taken in; 0: nothing
  int32_t accepted = 0;
};

}  // namespace gen::generate
