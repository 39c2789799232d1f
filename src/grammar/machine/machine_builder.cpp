// SPDX-License-Identifier: Apache-2.0
// The compiler of expressions, see machine_builder.h: each machine's expression becomes an Nfa,
// then an Automaton; left recursion is removed from all of them together, and they are put into one
// table (machine_table.h).
#include "grammar/machine/machine_builder.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/expression/analysis.h"
#include "grammar/machine/automaton.h"
#include "grammar/machine/left_recursion.h"
#include "grammar/machine/machine_table.h"

namespace gen::grammar {
namespace {

// Beyond this many nodes, rules are called instead of expanded inline.
constexpr uint32_t kLargeMachine = 20'000;
// ... and so are choices of this many positions, such as a character property, so that each is
// built once.
constexpr uint32_t kManyTargets = 64;

// Whether the number of members matters and is not determined by their bits.
bool is_counted(const MemberList& list) {
  if (list.min <= 1 && list.max == kUnbounded) return false;
  return !std::all_of(list.members.begin(), list.members.end(),
                      [](const auto& member) { return member.once; });
}

class MachineBuilder {
 public:
  MachineBuilder(const Expressions& expressions, size_t max_edges)
      : all_(expressions),
        building_(expressions.building()),
        facts_(analyse(expressions)),
        max_edges_(max_edges) {}

  Result<Machines> run(ExprId root) {
    if (building_ != nullptr) GEN_TRY(building_->status());
    const uint32_t first = machine_of(root);
    size_t edges = 0;
    for (uint32_t i = 0; i < bodies_.size(); ++i) {
      nfa_.clear();
      write(bodies_[i], Nfa::kStart, Nfa::kFinal, true);
      Automaton made;
      if (nfa_.edges.size() > max_edges_ ||
          !determinise(nfa_, max_edges_ - edges, &made, building_)) {
        return too_large();
      }
      edges += made.n_edges();
      if (edges > max_edges_) return too_large();
      automata_.push_back(std::move(made));
    }
    if (!remove_left_recursion(&automata_, &loops_, max_edges_, building_)) return too_large();
    Machines machines = make_table(automata_, loops_.take(), std::move(members_), first, building_);
    if (building_ != nullptr) GEN_TRY(building_->status());
    machines.terms.assign(all_.terms().begin(), all_.terms().end());
    machines.root_empty = facts_.of[root].nullable;
    return machines;
  }

 private:
  [[nodiscard]] Status too_large() const {
    if (building_ != nullptr) GEN_TRY(building_->status());
    return error(Code::kGrammar, "the grammar takes more than %zu edges", max_edges_);
  }

  uint32_t machine_of(ExprId body) {
    const auto [place, added] = machines_.try_emplace(body, static_cast<uint32_t>(bodies_.size()));
    if (added) bodies_.push_back(body);
    return place->second;
  }

  void call(ExprId body, Loop loop, uint32_t from, uint32_t to) {
    loop.machine = machine_of(body);
    const bool once = loop.min == 1 && loop.max == 1 && !loop.limited;
    nfa_.add_call(from, to, make_call(loop.machine, once ? 0 : loops_.number(loop)));
  }

  // Whether it is a rule that is expanded inline.
  [[nodiscard]] bool is_written_inside(ExprId id) const {
    return all_.at(id).kind == Kind::kRule && facts_.of[id].inlined && nfa_.n_nodes < kLargeMachine;
  }

  // Adds all paths of the expression between two nodes; `whole`: it is the body of a machine.
  // Recursion is as deep as expressions may be high.
  void write(ExprId id, uint32_t from, uint32_t to, bool whole = false) {
    // run() refuses it
    if (nfa_.edges.size() > max_edges_ || !goes_on(building_, 1)) return;
    // Heights do not count rules whose body is a rule, however long the sequence.
    while (is_written_inside(id)) {
      if (!goes_on(building_, 1)) return;
      id = all_.rules()[all_.at(id).first];
      whole = false;
    }
    const Expr& expr = all_.at(id);
    const Analysis::Facts& facts = facts_.of[id];
    const bool large = nfa_.n_nodes > kLargeMachine && facts.places >= kManyTargets;
    if (large && !whole && expr.kind == Kind::kChoice) {
      if (facts.nullable) nfa_.add_empty(from, to);
      call(id, Loop(), from, to);
      return;
    }
    switch (expr.kind) {
      case Kind::kNever:
      case Kind::kAssert:  // unreachable: dfa_builder.h has replaced it by an automaton
        break;
      case Kind::kEmpty:
        nfa_.add_empty(from, to);
        break;
      case Kind::kBytes:
        nfa_.add_bytes(from, to, all_.set(expr.first));
        break;
      case Kind::kToken:
        nfa_.add_token(from, to, expr.first);
        break;
      case Kind::kSequence: {
        const auto parts = all_.parts(expr);
        for (size_t i = 0; i < parts.size(); ++i) {
          const uint32_t next = i + 1 == parts.size() ? to : nfa_.add_node();
          write(parts[i], from, next);
          from = next;
        }
        break;
      }
      case Kind::kChoice:
        for (const ExprId part : all_.parts(expr)) write(part, from, to);
        break;
      case Kind::kDiagram: {
        if (facts.called && !whole) {
          if (facts.nullable) nfa_.add_empty(from, to);
          call(id, Loop(), from, to);
          break;
        }
        const Diagram& diagram = all_.diagram_of(expr);
        const uint32_t first = nfa_.n_nodes;
        nfa_.n_nodes += static_cast<uint32_t>(diagram.final.size());
        nfa_.add_empty(from, first);
        for (uint32_t k = 0; k < diagram.final.size(); ++k) {
          if (diagram.final[k]) nfa_.add_empty(first + k, to);
        }
        for (uint32_t k = 0; k < diagram.counted.size(); ++k) {
          if (diagram.counted[k]) nfa_.count(first + k);
        }
        for (const Diagram::Transition& way : diagram.transitions) {
          write(way.reads, first + way.from, first + way.to);
        }
        break;
      }
      case Kind::kLimited: {
        if (facts.nullable) nfa_.add_empty(from, to);
        Loop loop;
        loop.max = expr.max;
        loop.limited = true;
        call(expr.first, loop, from, to);
        break;
      }
      case Kind::kRule: {
        if (facts.nullable) nfa_.add_empty(from, to);
        call(all_.rules()[expr.first], Loop(), from, to);
        break;
      }
      case Kind::kMembers:
        members(all_.members_of(expr), from, to);
        break;
      case Kind::kRepeat:
        repeat(expr, facts, from, to);
        break;
    }
  }

  void members(const MemberList& list, uint32_t from, uint32_t to) {
    Members made;
    for (const MemberList::Member& member : list.members) {
      made.list.push_back({machine_of(member.body), member.bits, member.once, kFar, member.before,
                           member.after, kUnbounded});
    }
    made.in_order = list.in_order;
    made.required = list.required;
    made.min = list.min;
    made.max = list.max;
    made.counted = is_counted(list);
    made.separator = machine_of(list.separator);
    Loop loop = {made.separator, 1, 1, static_cast<uint32_t>(members_.size()), false, false, 0};
    members_.push_back(std::move(made));
    const uint32_t number = loops_.number(loop);
    loop.separator = true;
    (void)loops_.number(loop);  // directly after the other loop
    nfa_.add_call(from, to, make_call(loop.machine, number));
  }

  void repeat(const Expr& expr, const Analysis::Facts& facts, uint32_t from, uint32_t to) {
    if (!facts.written_out) {
      // Only non-empty rounds count; of a nullable body any number may be empty.
      const bool nullable = facts_.of[expr.first].nullable;
      const uint32_t min = nullable ? 0 : expr.min;
      if (min == 0) nfa_.add_empty(from, to);
      if (min <= 1 && expr.max == kUnbounded) {
        repeat_freely(expr.first, from, to);
      } else {
        call(expr.first, {0, std::max(min, 1U), expr.max, 0, false, false, 0}, from, to);
      }
      return;
    }
    const uint32_t fixed = expr.max == kUnbounded ? std::max(expr.min, 1U) - 1 : expr.min;
    for (uint32_t i = 0; i < fixed; ++i) {
      const bool whole = i + 1 == expr.max;
      const uint32_t next = whole ? to : nfa_.add_node();
      write(expr.first, from, next);
      from = next;
      if (whole) return;
    }
    if (expr.max == kUnbounded) {
      if (expr.min == 0) nfa_.add_empty(from, to);
      repeat_freely(expr.first, from, to);
      return;
    }
    for (uint32_t i = fixed; i < expr.max; ++i) {
      nfa_.add_empty(from, to);
      const uint32_t next = i + 1 == expr.max ? to : nfa_.add_node();
      write(expr.first, from, next);
      from = next;
    }
  }

  // One or more times.
  void repeat_freely(ExprId what, uint32_t from, uint32_t to) {
    const uint32_t begin = nfa_.add_node();
    const uint32_t end = nfa_.add_node();
    nfa_.add_empty(from, begin);
    write(what, begin, end);
    nfa_.add_empty(end, begin);
    nfa_.add_empty(end, to);
  }

  const Expressions& all_;
  Building* const building_;
  const Analysis facts_;
  const size_t max_edges_;
  Loops loops_;
  std::vector<Members> members_ = {Members()};
  std::vector<ExprId> bodies_;  // by machine
  std::unordered_map<ExprId, uint32_t> machines_;
  std::vector<Automaton> automata_;
  Nfa nfa_;
};

}  // namespace

Result<Machines> build_machines(const Expressions& expressions, ExprId root, size_t max_edges) {
  return MachineBuilder(expressions, max_edges).run(root);
}

}  // namespace gen::grammar
