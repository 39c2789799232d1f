// SPDX-License-Identifier: Apache-2.0
// Constructs of a Lark file that need automata: & and ~, shortest matches, substrings of a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// Builds the automata of one file. Each may have as many states as the fuel allows; the work is
/// limited in total. All expressions must be regular.
class LarkAutomata {
 public:
  LarkAutomata(Expressions& to, const DfaFuel& fuel) : to_(to), fuel_(fuel) {
    fuel_.spent = &spent_;
  }
  LarkAutomata(const LarkAutomata&) = delete;
  LarkAutomata& operator=(const LarkAutomata&) = delete;

  /// Texts that every operand matches.
  Result<ExprId> both(std::span<const ExprId> parts);
  /// UTF-8 texts that `expr` does not match.
  Result<ExprId> negation(ExprId expr);
  /// Texts that `expr` matches and that have no shorter match of `expr` as a prefix.
  Result<ExprId> shortest(ExprId expr);
  /// Texts of `body` up to the first position where a text of `stop` ends after one of `body`.
  Result<ExprId> until(ExprId body, ExprId stop);

 private:
  Result<Dfa> build(ExprId expr);

  Expressions& to_;
  DfaFuel fuel_;
  uint64_t spent_ = 0;
  Dfa any_text_;  // made on first use
};

/// Any run of consecutive pieces, including the empty one, as a suffix automaton. Cost: n log n.
ExprId stretches(Expressions& to, std::span<const std::string> pieces);

/// Splits text into runs of letters, digits and _; of white space; and of other characters.
std::vector<std::string> words_of(std::string_view text);
std::vector<std::string> characters_of(std::string_view text);

}  // namespace gen::grammar
