// SPDX-License-Identifier: Apache-2.0
// Deterministic automata, for the operations that need them: conjunction, difference, negation.
// Every state is reachable and leads to an end, so every text that such an automaton has read can
// still become a member. dfa_builder.h makes them from expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "grammar/base/building.h"
#include "grammar/base/edge_list.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// Limits for building automata.
struct DfaFuel {
  size_t states = 50'000;
  uint64_t work = uint64_t{1} << 25U;  // nodes visited
  uint64_t* spent = nullptr;           // nodes visited by others that share the limit
  Building* building = nullptr;        // the grammar that they belong to, or null
};

/// Counts the work on one automaton for all of its limits. `fuel` outlives it.
class DfaWork {
 public:
  explicit DfaWork(const DfaFuel& fuel) noexcept
      : fuel_(fuel), work_(fuel.spent != nullptr ? *fuel.spent : 0), told_(work_) {}
  ~DfaWork() {
    if (fuel_.spent != nullptr) *fuel_.spent = work_;
  }
  DfaWork(const DfaWork&) = delete;
  DfaWork& operator=(const DfaWork&) = delete;

  DfaWork& operator+=(uint64_t work) noexcept {
    work_ += work;
    return *this;
  }
  /// Whether the automaton cannot be finished.
  [[nodiscard]] bool is_over() noexcept {
    const uint64_t more = work_ - told_;
    told_ = work_;
    return !goes_on(fuel_.building, more) || work_ > fuel_.work;
  }
  [[nodiscard]] Status status() const;

 private:
  const DfaFuel& fuel_;
  uint64_t work_;
  uint64_t told_;
};

struct Dfa {
  struct State {
    EdgeList edges;  // by low, disjoint
    bool final = false;
  };
  std::vector<State> states;  // [0] is the start; empty: no text is a member
  [[nodiscard]] bool empty() const noexcept { return states.empty(); }
};

enum class Both {
  kAnd,  // members of both
  kNot,  // members of the first that are not of the second; for a negation the first is everything
  kOr,   // members of either
  kXor,  // members of exactly one
};

/// kGrammar if that exceeds the fuel, or the status of its building, here and below.
Result<Dfa> combine(const Dfa& a, const Dfa& b, Both how, const DfaFuel& fuel = {});

/// The union; of none: nothing. Combined pairwise in a tree, so that many small automata cost no
/// more than their number of states times the logarithm of their number.
Result<Dfa> unite(std::vector<Dfa> all, const DfaFuel& fuel = {});

/// Removes states that cannot be reached or lead to no end.
Dfa trim(Dfa dfa);

/// The same, with equivalent states merged.
Dfa minimise(Dfa dfa);

/// The same language as an expression.
ExprId expression_of(Expressions& to, const Dfa& dfa);

}  // namespace gen::grammar
