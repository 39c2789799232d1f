// SPDX-License-Identifier: Apache-2.0
// Expressions: the byte-level intermediate form that every front end produces and machine_builder.h
// compiles. An expression is a number in one store; equal expressions have equal numbers. A rule is
// a name for an expression that may be defined later, so rules may refer to each other and to
// themselves. Heights are bounded: a tall expression is split into rules, so algorithms over
// expressions may recurse. Conjunctions and negations of regular expressions, and assertions
// (kAssert), are turned into automata by dfa_builder.h and dfa.h, which are stored as diagrams.
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

/// Assertions of regular expressions: questions about a position that read nothing.
enum class Ask : uint8_t {
  kStart,   // of the text
  kEnd,     // of the text
  kWord,    // a boundary of a word of [A-Za-z0-9_]
  kAhead,   // lookahead: the body matches from here on
  kBehind,  // lookbehind: the body matches up to here
};

struct Assertion {
  Ask ask = Ask::kStart;
  bool negated = false;
  ExprId body = 0;
  bool operator==(const Assertion&) const = default;
};

/// An automaton whose transitions read expressions. Node 0 is the start.
struct Diagram {
  struct Transition {
    uint32_t from;
    uint32_t to;
    ExprId reads;
    bool operator==(const Transition&) const = default;
  };
  std::vector<bool> final;  // by node
  std::vector<Transition> transitions;
  std::vector<bool> counted = {};  // by node: Expressions::limited(); empty: no node is
  bool operator==(const Diagram&) const = default;
};

struct TokenRange {
  int32_t low;
  int32_t high;  // inclusive
  bool operator==(const TokenRange&) const = default;
};

/// One token of the vocabulary, by its text in the vocabulary, by ids, or by id; negated: any other
/// token except those that end a text.
struct TokenTerm {
  bool negated = false;
  int32_t id = -1;                      // used if there are no ranges; -1: no token
  std::string name;                     // used if it is not empty
  std::vector<TokenRange> ranges = {};  // by low, disjoint; used if there is no name
  bool operator==(const TokenTerm&) const = default;
};

/// Operands in any order with a separator between them, such as an object's members. See members.h.
struct MemberList {
  struct Member {
    ExprId body = 0;        // not empty
    MemberSet bits;         // the bits that it sets
    bool once = true;       // may occur at most once, and has a bit of its own
    MemberSet before = {};  // bits that must be set before it
    MemberSet after = {};   // bits that must not be set before it
  };
  ExprId separator = 0;  // not empty
  std::vector<Member> members;
  MemberSet required;     // bits that must be set at the end
  bool in_order = false;  // `before` and `after` apply; the list is in that order
  uint32_t min = 1;       // minimum number of members, at least 1
  uint32_t max = kUnbounded;
};

struct Expr {
  Kind kind = Kind::kNever;
  uint8_t height = 1;
  // kBytes: the set; kRule, kToken, kAssert: its number; kRepeat, kLimited: the operand; others:
  // where the list begins
  uint32_t first = 0;
  uint32_t count = 0;  // of operands, kSequence, kChoice and kDiagram
  uint32_t min = 0;    // kRepeat; the number of a kDiagram
  uint32_t max = 0;    // kRepeat, kLimited; kUnbounded
  bool operator==(const Expr&) const = default;
};

class Expressions {
 public:
  /// `building`, if not null, outlives it and counts what is made; once it has stopped, every new
  /// expression is kNever.
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
  /// Only the start itself may be an end that is reached without reading. Equal diagrams are one
  /// expression.
  ExprId diagram(Diagram diagram);
  /// Only dfa_builder.h understands it. Assertions in its body are made before it.
  ExprId assertion(const Assertion& assertion);

  /// The texts of a diagram that visit its counted nodes at most `most` times. Only the recogniser
  /// understands it.
  ExprId limited(ExprId diagram, uint32_t most);

  /// One or more members. Only the recogniser understands it: it has no finite automaton.
  ExprId members(MemberList list);

  /// A new rule, which matches nothing until it is defined. `apart`: it is always called, never
  /// expanded inline, however small it is.
  RuleId add_rule(bool apart = false);
  [[nodiscard]] bool is_apart(RuleId rule) const noexcept { return apart_[rule]; }
  void define(RuleId rule, ExprId body) { rules_[rule] = body; }
  ExprId rule(RuleId rule);

  [[nodiscard]] const Expr& at(ExprId id) const noexcept { return exprs_[id]; }
  [[nodiscard]] std::span<const ExprId> parts(const Expr& expr) const noexcept {
    if (expr.count == 0) return {};  // `first` has another meaning then
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
  std::vector<ExprId> kept_;  // operands under construction; kept for its memory
};

}  // namespace gen::grammar
