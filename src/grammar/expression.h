// SPDX-License-Identifier: Apache-2.0
// Expressions: the byte-level form that every front end produces and machine_builder.h compiles.
// Expressions are numbers into one store; equal ones have equal numbers. A rule is a name for an
// expression that may be defined later, so rules may refer to each other and to themselves.
// Heights are bounded: a tall expression is cut into rules of its own, so whoever walks an
// expression may recurse. What comes next (conjunction, negation, exclusive alternatives) is a
// further Kind here and a further way to make an automaton in machine_builder.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/byte_set.h"

namespace gen::grammar {

using ExprId = uint32_t;
using RuleId = uint32_t;

inline constexpr uint32_t kUnbounded = UINT32_MAX;
inline constexpr uint32_t kMaxHeight = 48;

enum class Kind : uint8_t { kNever, kEmpty, kBytes, kSequence, kChoice, kRepeat, kRule, kToken };

/// One token of the vocabulary, by id or by its text as the vocabulary spells it; negated: any
/// other token.
struct TokenTerm {
  bool negated = false;
  int32_t id = -1;
  std::string name;  // used if it is not empty
  bool operator==(const TokenTerm&) const = default;
};

struct Expr {
  Kind kind = Kind::kNever;
  uint8_t height = 1;
  uint32_t first = 0;  // kBytes: the set; kRule, kToken: which; kRepeat: what; else in the list
  uint32_t count = 0;  // of operands, kSequence and kChoice
  uint32_t min = 0;    // kRepeat
  uint32_t max = 0;    // kRepeat; kUnbounded
  bool operator==(const Expr&) const = default;
};

class Expressions {
 public:
  Expressions();

  static constexpr ExprId kNever = 0;  // matches nothing
  static constexpr ExprId kEmpty = 1;  // matches the empty text

  ExprId bytes(const ByteSet& set);
  ExprId literal(std::string_view text);
  ExprId sequence(std::span<const ExprId> parts);
  ExprId choice(std::span<const ExprId> parts);
  ExprId repeat(ExprId what, uint32_t min, uint32_t max);
  ExprId token(TokenTerm term);

  /// A new rule, which matches nothing until it is defined.
  RuleId add_rule();
  void define(RuleId rule, ExprId body) { rules_[rule] = body; }
  ExprId rule(RuleId rule);

  [[nodiscard]] const Expr& at(ExprId id) const noexcept { return exprs_[id]; }
  [[nodiscard]] std::span<const ExprId> parts(const Expr& expr) const noexcept {
    if (expr.count == 0) return {};  // `first` then means something else
    return std::span(parts_).subspan(expr.first, expr.count);
  }
  [[nodiscard]] const ByteSet& set(uint32_t index) const noexcept { return sets_[index]; }
  [[nodiscard]] std::span<const TokenTerm> terms() const noexcept { return terms_; }
  [[nodiscard]] std::span<const ExprId> rules() const noexcept { return rules_; }
  [[nodiscard]] size_t count() const noexcept { return exprs_.size(); }

 private:
  ExprId intern(Expr expr, std::span<const ExprId> parts);
  ExprId low(ExprId id);
  uint8_t height_above(std::span<const ExprId> parts) const;

  std::vector<Expr> exprs_;
  std::vector<ExprId> parts_;
  std::vector<ByteSet> sets_;
  std::vector<TokenTerm> terms_;
  std::vector<ExprId> rules_;
  std::unordered_multimap<uint64_t, ExprId> known_;
  std::unordered_multimap<uint64_t, uint32_t> known_sets_;
};

}  // namespace gen::grammar
