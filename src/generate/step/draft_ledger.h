// SPDX-License-Identifier: Apache-2.0
// DraftLedger: what guesses have cost beside what they brought, both in steps without guesses, so
// that what is lost by them stays a small share of the time, whatever the estimates of the planner
// say and why ever they are wrong.
#pragma once

#include <algorithm>

namespace gen::generate {

/// An account. Each step pays a small share of itself in, guesses pay in what they bring and take
/// out what they cost; where it is empty nothing is guessed until it has filled again. It holds a
/// few times what a step with guesses costs, so that a few that are wrong do not empty it while
/// most are right, and no more, so that what has been won once is not all lost later.
/// Threads: one at a time.
class DraftLedger {
 public:
  static constexpr double kShare = 0.01;  // of the time, that may be lost
  static constexpr double kFirst = 0.5;   // steps that may be lost at first
  static constexpr double kHolds = 4.0;   // steps with guesses that may be lost in a row
  static constexpr double kForgets = 0.02;
  /// Steps that one with guesses counts at most: a machine that does something else makes any step
  /// long.
  static constexpr double kWorst = 20.0;

  /// A step, which guesses have made so many times a plain step longer; below 0, shorter.
  void note_step(double longer) noexcept {
    const double costs = std::min(longer, kWorst);
    dearest_ = std::max(costs, (1 - kForgets) * dearest_);
    add(kShare - costs);
  }
  /// Guesses were right, which is worth so many plain steps.
  void note_right(double steps) noexcept { add(steps); }
  /// Whether something may be guessed.
  [[nodiscard]] bool allows() const noexcept { return balance_ > 0; }

 private:
  void add(double steps) noexcept {
    balance_ = std::min(balance_ + steps, kHolds * (1 + dearest_));
  }

  double balance_ = kFirst;
  double dearest_ = 0;  // that a step has cost lately
};

}  // namespace gen::generate
