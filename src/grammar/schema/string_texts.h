// SPDX-License-Identifier: Apache-2.0
// Sets of strings as expressions of their JSON texts, where any character may be escaped: "\u0061"
// is a. The escapes of each set of characters are a separate rule, shared by all strings of a
// grammar, so that an escape takes one state besides that of the character.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// First and last; sorted, disjoint.
using CharacterRanges = std::vector<std::pair<uint32_t, uint32_t>>;

class StringTexts {
 public:
  /// `plain`: one text per string (JsonStyle::plain).
  explicit StringTexts(Expressions& to, bool plain = false) : to_(to), plain_(plain) {}

  /// Texts of the strings of at most `most` characters, with their quotes. kGrammar if that exceeds
  /// the fuel.
  Result<ExprId> texts_of(const Dfa& strings, const DfaFuel& fuel, uint32_t most = kUnbounded);
  /// The same without quotes: parts of strings. No string may be empty.
  Result<ExprId> parts_of(const Dfa& strings, const DfaFuel& fuel);
  /// Texts of one string, in UTF-8.
  ExprId texts_of(std::string_view string);
  /// The texts after the backslash of a character in these ranges.
  ExprId escapes_of(const CharacterRanges& ranges);
  [[nodiscard]] bool plain() const noexcept { return plain_; }
  [[nodiscard]] Building* building() const noexcept { return to_.building(); }

 private:
  Expressions& to_;
  const bool plain_;
  Result<ExprId> write(const Dfa& strings, bool quoted, bool counted, const DfaFuel& fuel);
  ExprId character(uint32_t code, std::string_view bytes);
  std::map<CharacterRanges, ExprId> escapes_;
  std::unordered_map<uint32_t, ExprId> characters_;
};

/// One character of a string as JSON text, escaped or not.
ExprId json_character(Expressions& to);

}  // namespace gen::grammar
