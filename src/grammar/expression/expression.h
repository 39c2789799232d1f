// SPDX-License-Identifier: Apache-2.0
// Expressions: the byte-level form that every front end produces and machine_builder.h compiles.
// Expressions are numbers into one store; equal ones have equal numbers. A rule is a name for an
// expression that may be defined later, so rules may refer to each other and to themselves.
// Heights are bounded: a tall expression is cut into rules of its own, so whoever walks an
// expression may recurse. Conjunction and negation of what is regular, and what only asks about its
// surroundings (kAssert), are made automata by dfa_builder.h and dfa.h, which come back as
// diagrams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/base/building.h"
#include "grammar/base/byte_set.h"
#include "grammar/base/hash_index.h"
#include "grammar/base/member_set.h"

namespace gen::grammar {

using ExprId = uint32_t;
using RuleId = uint32_t;

inline constexpr uint32_t kUnbounded = UINT32_MAX;
inline constexpr uint32_t kMaxHeight = 48;

enum class Kind : uint8_t {
  kNever,
  kEmpty,
  kBytes,
  kSequence,
  kChoice,
  kRepeat,
  kRule,
  kToken,
  kDiagram,
  kAssert,
  kMembers,
  kLimited,
};

/// What a regular expression may ask about a place without reading there.
enum class Ask : uint8_t {
  kStart,   // of the text
  kEnd,     // of the text
  kWord,    // a border of a word of [A-Za-z0-9_]
  kAhead,   // the body matches from here on
  kBehind,  // the body matches up to here
};

struct Assertion {
  Ask ask = Ask::kStart;
  bool negated = false;
  ExprId body = 0;
  bool operator==(const Assertion&) const = default;
};

/// Nodes with ways between them, each reading an expression. Node 0 is the start.
struct Diagram {
  struct Way {
    uint32_t from;
    uint32_t to;
    ExprId reads;
    bool operator==(const Way&) const = default;
  };
  std::vector<bool> final;  // by node
  std::vector<Way> ways;
  std::vector<bool> counted = {};  // by node: Expressions::limited(); empty: none is
  bool operator==(const Diagram&) const = default;
};

struct TokenRange {
  int32_t low;
  int32_t high;  // inclusive
  bool operator==(const TokenRange&) const = default;
};

/// One token of the vocabulary, by its text as the vocabulary spells it, by ids, or by id; negated:
/// any other token but those that end a text.
struct TokenTerm {
  bool negated = false;
  int32_t id = -1;                      // used if there are no ranges; -1: none
  std::string name;                     // used if it is not empty
  std::vector<TokenRange> ranges = {};  // by low, apart from each other; used if there is no name
  bool operator==(const TokenTerm&) const = default;
};

/// Parts in any order, each but the first behind a separator between them: what an object's members
/// are. See members.h.
struct MemberList {
  struct Member {
    ExprId body = 0;        // not empty
    MemberSet bits;         // what it puts into the set
    bool once = true;       // may come once at most, and has a bit of its own
    MemberSet before = {};  // bits that must have come before it
    MemberSet after = {};   // bits that must not
  };
  ExprId separator = 0;  // not empty
  std::vector<Member> members;
  MemberSet required;     // bits that must be there at the end
  bool in_order = false;  // `before` and `after` say something; the list is in that order
  uint32_t min = 1;       // members, at least 1
  uint32_t max = kUnbounded;
};

struct Expr {
  Kind kind = Kind::kNever;
  uint8_t height = 1;
  // kBytes: the set; kRule, kToken, kAssert: which; kRepeat, kLimited: what; else in the list
  uint32_t first = 0;
  uint32_t count = 0;  // of operands, kSequence, kChoice and kDiagram
  uint32_t min = 0;    // kRepeat; which, kDiagram
  uint32_t max = 0;    // kRepeat, kLimited; kUnbounded
  bool operator==(const Expr&) const = default;
};

class Expressions {
 public:
  /// `building`, if not null, outlives it and is told of what is made; once it has stopped,
  /// whatever would be new is kNever.
  explicit Expressions(Building* building = nullptr);

  [[nodiscard]] Building* building() const noexcept { return building_; }

  static constexpr ExprId kNever = 0;  // matches nothing
  static constexpr ExprId kEmpty = 1;  // matches the empty text

  ExprId bytes(const ByteSet& set);
  ExprId literal(std::string_view text);
  ExprId sequence(std::span<const ExprId> parts);
  ExprId choice(std::span<const ExprId> parts);
  ExprId repeat(ExprId what, uint32_t min, uint32_t max);
  ExprId token(TokenTerm term);
  /// Only the start itself may be an end that is reached for nothing. Equal ones are one
  /// expression.
  ExprId diagram(Diagram diagram);
  /// Only dfa_builder.h understands it. What it asks about in its body is made before it.
  ExprId assertion(const Assertion& assertion);

  /// Those texts of a diagram that come to its counted nodes at most `most` times. Only the
  /// recogniser understands it.
  ExprId limited(ExprId diagram, uint32_t most);

  /// One or more members. Only the recogniser understands it: it is in no automaton.
  ExprId members(MemberList list);

  /// A new rule, which matches nothing until it is defined. Apart: it is called wherever it stands,
  /// however small it is.
  RuleId add_rule(bool apart = false);
  [[nodiscard]] bool is_apart(RuleId rule) const noexcept { return apart_[rule]; }
  void define(RuleId rule, ExprId body) { rules_[rule] = body; }
  ExprId rule(RuleId rule);

  [[nodiscard]] const Expr& at(ExprId id) const noexcept { return exprs_[id]; }
  [[nodiscard]] std::span<const ExprId> parts(const Expr& expr) const noexcept {
    if (expr.count == 0) return {};  // `first` then means something else
    return std::span(parts_).subspan(expr.first, expr.count);
  }
  [[nodiscard]] const ByteSet& set(uint32_t index) const noexcept { return sets_[index]; }
  [[nodiscard]] std::span<const TokenTerm> terms() const noexcept { return terms_; }
  [[nodiscard]] const Diagram& diagram_of(const Expr& expr) const noexcept {
    return diagrams_[expr.min];
  }
  [[nodiscard]] const MemberList& members_of(const Expr& expr) const noexcept {
    return member_lists_[expr.min];
  }
  [[nodiscard]] std::span<const Assertion> assertions() const noexcept { return assertions_; }
  [[nodiscard]] std::span<const ExprId> rules() const noexcept { return rules_; }
  [[nodiscard]] size_t count() const noexcept { return exprs_.size(); }

 private:
  ExprId intern(Expr expr, std::span<const ExprId> parts);
  bool has_room(size_t parts, size_t ways);
  ExprId low(ExprId id);
  uint8_t height_above(std::span<const ExprId> parts) const;

  Building* const building_;
  size_t n_ways_ = 0;  // of all diagrams
  std::vector<Expr> exprs_;
  std::vector<ExprId> parts_;
  std::vector<ByteSet> sets_;
  std::vector<TokenTerm> terms_;
  std::vector<ExprId> rules_;
  std::vector<bool> apart_;  // by rule
  std::vector<Diagram> diagrams_;
  std::vector<Assertion> assertions_;
  std::vector<MemberList> member_lists_;
  HashIndex known_;
  HashIndex known_sets_;
  HashIndex known_diagrams_;
  std::unordered_map<std::string, uint32_t> known_terms_;
  std::vector<ExprId> kept_;  // of what is being made; for its memory
};

}  // namespace gen::grammar
