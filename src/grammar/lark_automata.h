// SPDX-License-Identifier: Apache-2.0
// What of a Lark file only automata can say: & and ~, shortest matches, pieces of a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/dfa.h"
#include "grammar/expression.h"

namespace gen::grammar {

/// The automata of one file: each may have the fuel's states, all of them together have its work.
/// Expressions that are asked about are regular.
class LarkAutomata {
 public:
  LarkAutomata(Expressions& to, const DfaFuel& fuel) : to_(to), fuel_(fuel) {
    fuel_.spent = &spent_;
  }
  LarkAutomata(const LarkAutomata&) = delete;
  LarkAutomata& operator=(const LarkAutomata&) = delete;

  /// Texts that all parts match.
  Result<ExprId> both(std::span<const ExprId> parts);
  /// Texts, of whole characters, that it does not match.
  Result<ExprId> negation(ExprId expr);
  /// Texts that it matches, but for those that begin with a shorter one.
  Result<ExprId> shortest(ExprId expr);
  /// Texts of `body` that `stop` may follow, where nothing shorter of `body` and `stop` ends.
  Result<ExprId> until(ExprId body, ExprId stop);

 private:
  Result<Dfa> build(ExprId expr);

  Expressions& to_;
  DfaFuel fuel_;
  uint64_t spent_ = 0;
  Dfa any_text_;  // once it was needed
};

/// Any stretch of the pieces, the empty one included: a suffix automaton of them. Cost: linear, but
/// for a logarithm.
ExprId stretches(Expressions& to, std::span<const std::string> pieces);

/// Letters, digits and _ in a row are a piece; so are white space, and other characters.
std::vector<std::string> words_of(std::string_view text);
std::vector<std::string> characters_of(std::string_view text);

}  // namespace gen::grammar
