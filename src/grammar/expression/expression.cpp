// SPDX-License-Identifier: Apache-2.0
// Expressions, see expression.h.
#include "grammar/expression/expression.h"

#include <algorithm>
#include <utility>

#include "grammar/base/hash.h"

namespace gen::grammar {
namespace {

constexpr uint64_t kWorkPerNewNode = 4;
// Expressions per edge of the limit: equal expressions are merged, and some are never used.
constexpr size_t kPartsPerEdge = 4;
constexpr size_t kWaysPerEdge = 2;

}  // namespace

Expressions::Expressions(Building* building) : building_(building) {
  Expr never;
  exprs_.push_back(never);
  Expr empty;
  empty.kind = Kind::kEmpty;
  exprs_.push_back(empty);
}

// Whether that many more expressions and transitions of diagrams may be made.
bool Expressions::has_room(size_t parts, size_t ways) {
  if (building_ == nullptr) return true;
  const size_t most = building_->max_edges();
  if ((parts_.size() + parts) / kPartsPerEdge > most || (n_ways_ + ways) / kWaysPerEdge > most) {
    building_->too_large();
  }
  return !building_->stopped();
}

ExprId Expressions::intern(Expr expr, std::span<const ExprId> parts) {
  if (!goes_on(building_, kWorkPerNewNode + parts.size())) return kNever;
  uint64_t hash = mix(static_cast<uint64_t>(expr.kind), parts.empty() ? expr.first : 0);
  hash = mix(mix(hash, expr.min), expr.max);
  for (const ExprId part : parts) hash = mix(hash, part);
  const uint32_t known = known_.find(hash, [&](ExprId id) {
    const Expr& old = exprs_[id];
    if (old.kind != expr.kind || old.min != expr.min || old.max != expr.max) return false;
    if (old.count != parts.size() || (parts.empty() && old.first != expr.first)) return false;
    return std::equal(parts.begin(), parts.end(), this->parts(old).begin());
  });
  if (known != HashIndex::kNone) return known;
  if (!has_room(parts.size(), 0)) return kNever;
  if (!parts.empty()) {
    expr.first = static_cast<uint32_t>(parts_.size());
    expr.count = static_cast<uint32_t>(parts.size());
    parts_.insert(parts_.end(), parts.begin(), parts.end());
  }
  const auto id = static_cast<ExprId>(exprs_.size());
  exprs_.push_back(expr);
  known_.add(hash, id);
  return id;
}

// Moves a tall expression into a rule.
ExprId Expressions::low(ExprId id) {
  if (exprs_[id].height < kMaxHeight) return id;
  const RuleId rule = add_rule();
  define(rule, id);
  return this->rule(rule);
}

uint8_t Expressions::height_above(std::span<const ExprId> parts) const {
  uint8_t height = 0;
  for (const ExprId part : parts) height = std::max(height, exprs_[part].height);
  return static_cast<uint8_t>(height + 1);
}

ExprId Expressions::bytes(const ByteSet& set) {
  if (set.empty()) return kNever;
  uint64_t hash = 0;
  for (const uint64_t word : set.words) hash = mix(hash, word);
  Expr expr;
  expr.kind = Kind::kBytes;
  expr.first = known_sets_.find(hash, [&](uint32_t old) { return sets_[old] == set; });
  if (expr.first == HashIndex::kNone) {
    expr.first = static_cast<uint32_t>(sets_.size());
    sets_.push_back(set);
    known_sets_.add(hash, expr.first);
  }
  return intern(expr, {});
}

ExprId Expressions::literal(std::string_view text) {
  std::vector<ExprId> parts;
  parts.reserve(text.size());
  for (const char c : text) parts.push_back(bytes(ByteSet::one(static_cast<uint8_t>(c))));
  return sequence(parts);
}

ExprId Expressions::sequence(std::span<const ExprId> parts) {
  std::vector<ExprId>& kept = kept_;
  kept.clear();
  for (const ExprId part : parts) {
    if (part == kNever) return kNever;
    if (part != kEmpty) kept.push_back(low(part));
  }
  if (kept.empty()) return kEmpty;
  if (kept.size() == 1) return kept[0];
  Expr expr;
  expr.kind = Kind::kSequence;
  expr.height = height_above(kept);
  return intern(expr, kept);
}

ExprId Expressions::choice(std::span<const ExprId> parts) {
  std::vector<ExprId>& kept = kept_;
  kept.clear();
  ByteSet united;
  for (const ExprId part : parts) {
    if (exprs_[part].kind == Kind::kBytes) {
      united.add(sets_[exprs_[part].first]);
    } else if (part != kNever) {
      kept.push_back(low(part));
    }
  }
  if (!united.empty()) kept.push_back(bytes(united));
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (kept.empty()) return kNever;
  if (kept.size() == 1) return kept[0];
  Expr expr;
  expr.kind = Kind::kChoice;
  expr.height = height_above(kept);
  return intern(expr, kept);
}

ExprId Expressions::repeat(ExprId what, uint32_t min, uint32_t max) {
  if (min > max) return kNever;
  if (max == 0 || what == kEmpty) return kEmpty;
  if (what == kNever) return min == 0 ? kEmpty : kNever;
  if (min == 1 && max == 1) return what;
  Expr expr;
  expr.kind = Kind::kRepeat;
  expr.first = low(what);
  expr.height = static_cast<uint8_t>(exprs_[expr.first].height + 1);
  expr.min = min;
  expr.max = max;
  return intern(expr, {});
}

ExprId Expressions::token(TokenTerm term) {
  Expr expr;
  expr.kind = Kind::kToken;
  std::string key = term.negated ? "!" : "=";
  if (!term.name.empty()) {
    key += ":" + term.name;
  } else if (term.ranges.empty()) {
    key += std::to_string(term.id);
  }
  for (const TokenRange& range : term.ranges) {
    key += std::to_string(range.low) + "-" + std::to_string(range.high) + ",";
  }
  const auto [known, added] = known_terms_.try_emplace(key, static_cast<uint32_t>(terms_.size()));
  expr.first = known->second;
  if (added) terms_.push_back(std::move(term));
  return intern(expr, {});
}

ExprId Expressions::diagram(Diagram diagram) {
  std::vector<ExprId>& reads = kept_;
  reads.clear();
  uint64_t hash = diagram.final.size();
  for (Diagram::Transition& way : diagram.transitions) {
    way.reads = low(way.reads);
    reads.push_back(way.reads);
    hash = mix(mix(hash, static_cast<uint64_t>(way.from) << 32 | way.to), way.reads);
  }
  if (diagram.transitions.empty()) return diagram.final[0] ? kEmpty : kNever;
  Expr expr;
  expr.kind = Kind::kDiagram;
  expr.height = height_above(reads);
  expr.min = known_diagrams_.find(hash, [&](uint32_t old) { return diagrams_[old] == diagram; });
  if (expr.min == HashIndex::kNone) {
    if (!has_room(reads.size(), reads.size())) return kNever;
    n_ways_ += reads.size();
    expr.min = static_cast<uint32_t>(diagrams_.size());
    diagrams_.push_back(std::move(diagram));
    known_diagrams_.add(hash, expr.min);
  }
  return intern(expr, reads);
}

ExprId Expressions::limited(ExprId diagram, uint32_t most) {
  if (exprs_[diagram].kind != Kind::kDiagram) return diagram;  // empty, or never matches
  Expr expr;
  expr.kind = Kind::kLimited;
  expr.first = diagram;
  expr.height = static_cast<uint8_t>(exprs_[diagram].height + 1);
  expr.max = most;
  return intern(expr, {});
}

ExprId Expressions::assertion(const Assertion& assertion) {
  Expr expr;
  expr.kind = Kind::kAssert;
  const auto old = std::find(assertions_.begin(), assertions_.end(), assertion);
  expr.first = static_cast<uint32_t>(old - assertions_.begin());
  if (old == assertions_.end()) assertions_.push_back(assertion);
  return intern(expr, {});
}

ExprId Expressions::members(MemberList list) {
  std::erase_if(list.members, [](const MemberList::Member& m) { return m.body == kNever; });
  if (list.members.empty()) return kNever;
  std::vector<ExprId> parts = {list.separator = low(list.separator)};
  for (MemberList::Member& member : list.members) {
    member.body = low(member.body);
    parts.push_back(member.body);
  }
  Expr expr;
  expr.kind = Kind::kMembers;
  expr.height = height_above(parts);
  expr.min = static_cast<uint32_t>(member_lists_.size());
  member_lists_.push_back(std::move(list));
  return intern(expr, parts);
}

RuleId Expressions::add_rule(bool apart) {
  rules_.push_back(kNever);
  apart_.push_back(apart);
  return static_cast<RuleId>(rules_.size() - 1);
}

ExprId Expressions::rule(RuleId rule) {
  Expr expr;
  expr.kind = Kind::kRule;
  expr.first = rule;
  return intern(expr, {});
}

}  // namespace gen::grammar
