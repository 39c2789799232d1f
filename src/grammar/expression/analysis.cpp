// SPDX-License-Identifier: Apache-2.0
// Facts about expressions, see analysis.h.
#include "grammar/expression/analysis.h"

#include <algorithm>
#include <utility>

#include "grammar/base/components.h"

namespace gen::grammar {
namespace {

constexpr uint64_t kWorkPerExpression = 16;
constexpr int kWideSet = 48;
// Limit for wide operands: each copy would be a state whose mask is expensive to compute.
constexpr uint32_t kMaxWide = 4;
constexpr uint8_t kMaxInlinedHeight = 80;
// A diagram with this many users, such as the name of a member that has different values in
// different alternatives, becomes a machine that is called: the text is then read by one machine
// instead of a copy in each user.
constexpr uint32_t kManyUsers = 4;

// Visits the operands of an expression; for a rule, its body.
template <typename Visit>
void each_part(const Expressions& all, ExprId id, Visit visit) {
  const Expr& expr = all.at(id);
  switch (expr.kind) {
    case Kind::kSequence:
    case Kind::kChoice:
    case Kind::kDiagram:
    case Kind::kMembers:
      for (const ExprId part : all.parts(expr)) visit(part);
      break;
    case Kind::kRepeat:
    case Kind::kLimited:
      visit(expr.first);
      break;
    case Kind::kRule:
      visit(all.rules()[expr.first]);
      break;
    default:
      break;
  }
}

// Visits the operands that are not byte sets: byte sets are known completely, and are most
// operands.
template <typename Visit>
void each_larger_part(const Expressions& all, ExprId id, Visit visit) {
  each_part(all, id, [&](ExprId part) {
    if (all.at(part).kind != Kind::kBytes) visit(part);
  });
}

Graph graph_of(const Expressions& all, uint32_t count) {
  Graph graph(count);
  for (ExprId id = 0; id < count; ++id) {
    each_larger_part(all, id, [&](ExprId part) { graph.add(part); });
    graph.close();
  }
  return graph;
}

// An expression is nullable once one operand is (a choice, a rule, a repetition), or once all are
// (a sequence).
void find_nullable(const Expressions& all, Analysis* facts) {
  const auto count = static_cast<uint32_t>(facts->of.size());
  std::vector<uint32_t> begin(count + 1, 0);
  for (ExprId id = 0; id < count; ++id) {
    each_larger_part(all, id, [&](ExprId part) { ++begin[part + 1]; });
  }
  for (uint32_t i = 0; i < count; ++i) begin[i + 1] += begin[i];
  std::vector<ExprId> users(begin[count]);
  std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
  std::vector<uint32_t> waits(count, 1);
  std::vector<ExprId> found;
  for (ExprId id = 0; id < count; ++id) {
    each_larger_part(all, id, [&](ExprId part) { users[fill[part]++] = id; });
    const Expr& expr = all.at(id);
    if (expr.kind == Kind::kSequence) waits[id] = expr.count;
    bool may_be_none = expr.kind == Kind::kRepeat && expr.min == 0;
    if (expr.kind == Kind::kDiagram) {
      may_be_none = all.diagram_of(expr).final[0];
      waits[id] = UINT32_MAX;
    }
    if (expr.kind == Kind::kMembers) waits[id] = UINT32_MAX;
    if (expr.kind == Kind::kEmpty || may_be_none) {
      facts->of[id].nullable = true;
      found.push_back(id);
    }
  }
  while (!found.empty()) {
    const ExprId id = found.back();
    found.pop_back();
    for (uint32_t i = begin[id]; i < begin[id + 1]; ++i) {
      const ExprId user = users[i];
      if (facts->of[user].nullable || --waits[user] > 0) continue;
      facts->of[user].nullable = true;
      found.push_back(user);
    }
  }
}

uint32_t times(uint32_t a, uint32_t b) {
  const uint64_t product = static_cast<uint64_t>(a) * b;
  return static_cast<uint32_t>(std::min<uint64_t>(product, UINT32_MAX));
}

// Whether a diagram may continue from a node where it may end.
bool ends_open(const Expressions& all, const Expr& expr) {
  const Diagram& diagram = all.diagram_of(expr);
  return std::any_of(diagram.transitions.begin(), diagram.transitions.end(),
                     [&](const Diagram::Transition& way) { return diagram.final[way.from]; });
}

// The facts of its operands are known.
void find_size(const Expressions& all, ExprId id, Analysis* facts) {
  const Expr& expr = all.at(id);
  Analysis::Facts& own = facts->of[id];
  const auto part_of = [&](ExprId part) -> const Analysis::Facts& { return facts->of[part]; };
  switch (expr.kind) {
    case Kind::kBytes:
      own.wide = all.set(expr.first).count() >= kWideSet;
      break;
    case Kind::kSequence:
    case Kind::kChoice: {
      uint64_t places = 0;
      for (const ExprId id_of_part : all.parts(expr)) {
        const Analysis::Facts& part = part_of(id_of_part);
        places += part.places;
        own.height = std::max(own.height, static_cast<uint8_t>(part.height + 1));
        own.wide |= part.wide;
        own.wide_loop |= part.wide_loop;
        // In a sequence: of an operand after which nothing need follow.
        const bool at_end = expr.kind == Kind::kChoice || part.nullable;
        own.open_end = (at_end && own.open_end) || part.open_end;
      }
      own.places = static_cast<uint32_t>(std::min<uint64_t>(places, UINT32_MAX));
      break;
    }
    case Kind::kDiagram: {
      uint64_t places = all.diagram_of(expr).final.size();
      for (const ExprId id_of_part : all.parts(expr)) {
        const Analysis::Facts& part = part_of(id_of_part);
        places += part.places;
        own.height = std::max(own.height, static_cast<uint8_t>(part.height + 1));
        own.wide |= part.wide;
      }
      own.places = static_cast<uint32_t>(std::min<uint64_t>(places, UINT32_MAX));
      own.called = (own.wide || own.users >= kManyUsers) && !ends_open(all, expr);
      if (own.called) {
        own.places = own.height = 1;
        own.wide = false;
      }
      own.wide_loop = own.open_end = own.wide;
      break;
    }
    case Kind::kRepeat: {
      const Analysis::Facts& part = part_of(expr.first);
      const uint32_t copies = expr.max == kUnbounded ? std::max(expr.min, 1U) : expr.max;
      own.places = times(part.places, copies);
      own.written_out =
          copies == 1 || (own.places <= kMaxWrittenOut && !(part.wide && copies > kMaxWide));
      if (!own.written_out) {
        own.places = 1;
        break;
      }
      own.height = static_cast<uint8_t>(part.height + 1);
      own.wide = part.wide;
      own.wide_loop = part.wide_loop || (part.wide && expr.max == kUnbounded);
      own.open_end = part.open_end || (part.wide && expr.max == kUnbounded);
      break;
    }
    case Kind::kRule: {
      const Analysis::Facts& body = part_of(all.rules()[expr.first]);
      // A terminated loop over most bytes, such as a string, stays a machine, so that the knowledge
      // about tokens inside it is shared by all of its uses.
      const bool shared = body.wide_loop && !body.open_end;
      own.inlined = !own.recursive && !shared && !all.is_apart(expr.first) &&
                    body.places <= kMaxInlined && body.height < kMaxInlinedHeight;
      if (!own.inlined) break;
      const bool nullable = own.nullable;
      own = body;
      own.nullable = nullable;
      own.recursive = false;
      own.written_out = false;
      own.inlined = true;
      own.called = false;
      break;
    }
    default:
      break;
  }
}

// Whether it matches a text, judging by the operands known so far.
bool seems_to_match(const Expressions& all, const Expr& expr, const std::vector<bool>& known) {
  const auto parts = all.parts(expr);
  const auto matches = [&](ExprId part) { return known[part]; };
  switch (expr.kind) {
    case Kind::kNever:
      return false;
    case Kind::kSequence:
      return std::all_of(parts.begin(), parts.end(), matches);
    case Kind::kChoice:
      return std::any_of(parts.begin(), parts.end(), matches);
    case Kind::kDiagram:
      return all.diagram_of(expr).final[0] || std::any_of(parts.begin(), parts.end(), matches);
    case Kind::kRepeat:
      return expr.min == 0 || known[expr.first];
    case Kind::kLimited:
      return known[expr.first];
    case Kind::kRule:
      return known[all.rules()[expr.first]];
    case Kind::kMembers: {
      const MemberList& list = all.members_of(expr);
      MemberSet met;
      bool some = false;
      for (const MemberList::Member& member : list.members) {
        if (!known[member.body]) continue;
        some = true;
        met |= member.bits;
      }
      return some && (list.required & ~met).none();
    }
    default:
      return true;
  }
}

}  // namespace

bool may_match(const Expressions& expressions, ExprId id) {
  std::vector<bool> known(expressions.count(), false);
  bool changed = false;
  const auto look = [&](ExprId one) {
    if (known[one] || !seems_to_match(expressions, expressions.at(one), known)) return;
    known[one] = true;
    changed = true;
  };
  // Operands are older than the whole; bodies of rules are mostly newer.
  do {
    if (!goes_on(expressions.building(), known.size())) break;
    changed = false;
    for (ExprId one = 0; one < known.size(); ++one) look(one);
    for (ExprId one = static_cast<ExprId>(known.size()); one-- > 0 && !known[id];) look(one);
  } while (changed && !known[id]);
  return known[id];
}

Analysis analyse(const Expressions& expressions) {
  const auto count = static_cast<uint32_t>(expressions.count());
  Analysis facts;
  if (!goes_on(expressions.building(), kWorkPerExpression * count)) return facts;
  facts.of.resize(count);
  find_nullable(expressions, &facts);
  const Graph graph = graph_of(expressions, count);
  for (ExprId id = 0; id < count; ++id) {
    if (expressions.at(id).kind == Kind::kBytes) find_size(expressions, id, &facts);
    for (const uint32_t part : graph.targets(id)) ++facts.of[part].users;
  }
  std::vector<uint32_t> members;
  components(graph, [&](std::span<const uint32_t> component) {
    members.assign(component.begin(), component.end());
    const bool recursive = members.size() > 1 || graph.has(members[0], members[0]);
    // Operands are older than the whole, except for rules, which do not matter here.
    std::sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
      const bool a_rule = expressions.at(a).kind == Kind::kRule;
      const bool b_rule = expressions.at(b).kind == Kind::kRule;
      return a_rule != b_rule ? a_rule : a < b;
    });
    for (const uint32_t id : members) {
      facts.of[id].recursive = recursive;
      find_size(expressions, id, &facts);
    }
  });
  return facts;
}

}  // namespace gen::grammar
