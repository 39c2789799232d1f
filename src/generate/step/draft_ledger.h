// SPDX-License-Identifier: Apache-2.0
// DraftLedger: compares the cost of drafts with their gain, both in units of a plain step, and
// bounds the loss to a small share of the time, however wrong the planner's estimates are.
#pragma once

#include <algorithm>

namespace gen::generate {

/// An account. Each step pays in a small share of itself; accepted drafts pay in their gain,
/// drafting takes out its cost. While the account is empty nothing is drafted. Its limit is a few
/// times the cost of a step with drafts: enough that a few rejected drafts do not empty it while
/// most are accepted, and no more, so that earlier gains cannot all be lost later. Threads: one at
/// a time.
class DraftLedger {
 public:
  static constexpr double kShare = 0.01;  // share of the time that may be lost
  static constexpr double kFirst = 0.5;   // initial balance, in plain steps
  static constexpr double kHolds = 4.0;   // limit, in steps with drafts
  static constexpr double kForgets = 0.02;
  /// Most that one step with drafts may cost, in plain steps. Other load on the machine can make
  /// any step long.
  static constexpr double kWorst = 20.0;

  /// A step that drafts made longer by `longer` plain steps; negative if shorter.
  void note_step(double longer) noexcept {
    const double costs = std::min(longer, kWorst);
    dearest_ = std::max(costs, (1 - kForgets) * dearest_);
    add(kShare - costs);
  }
  /// Accepted drafts, worth `steps` plain steps.
  void note_right(double steps) noexcept { add(steps); }
  /// Whether drafting is allowed now.
  [[nodiscard]] bool allows() const noexcept { return balance_ > 0; }

 private:
  void add(double steps) noexcept {
    balance_ = std::min(balance_ + steps, kHolds * (1 + dearest_));
  }

  double balance_ = kFirst;
  double dearest_ = 0;  // largest recent cost of a step
};

}  // namespace gen::generate
