// SPDX-License-Identifier: Apache-2.0
// Automata with one way for each byte, for what only they can do exactly: conjunction, difference,
// negation. Every state can be reached and leads to an end, so whatever such an automaton has read
// can still become a member. dfa_builder.h makes them of expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "grammar/base/building.h"
#include "grammar/base/edge_list.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// What automata may take.
struct DfaFuel {
  size_t states = 50'000;
  uint64_t work = uint64_t{1} << 25U;  // nodes looked at
  uint64_t* spent = nullptr;           // what others have looked at, if they share the work
  Building* building = nullptr;        // of which they are a part, or null
};

/// The work on one automaton, told to all who count it. `fuel` outlives it.
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
    EdgeList edges;  // by low, apart from each other
    bool final = false;
  };
  std::vector<State> states;  // [0] is the start; none: no text is a member
  [[nodiscard]] bool empty() const noexcept { return states.empty(); }
};

enum class Both {
  kAnd,  // members of both
  kNot,  // members of the first that are not of the second; negation: the first is everything
  kOr,   // members of any
  kXor,  // members of exactly one
};

/// kGrammar if that takes more than the fuel, or what its building says, here and below.
Result<Dfa> combine(const Dfa& a, const Dfa& b, Both how, const DfaFuel& fuel = {});

/// Members of any of them; none: nothing. Halves are joined first, so that many small ones cost no
/// more than they have states, times the logarithm of their number.
Result<Dfa> unite(std::vector<Dfa> all, const DfaFuel& fuel = {});

/// Without what cannot be reached or leads nowhere.
Dfa trim(Dfa dfa);

/// The same, and states that are alike made one.
Dfa minimise(Dfa dfa);

/// The same texts as an expression.
ExprId expression_of(Expressions& to, const Dfa& dfa);

}  // namespace gen::grammar
