// SPDX-License-Identifier: Apache-2.0
// Automata of expressions, see dfa_builder.h.
//
// The expression and the body of each assertion become one graph of nodes (NodeGraph). A state of
// the automaton is a set of cases. A case records the nodes where the expression may be (`main`);
// the nodes where bodies of lookbehind assertions may be, started at every position so far; and its
// promises about the rest of the text: that a body does, or does not, match from a position on. To
// evaluate a lookahead, a case is split into one case per answer, each of which promises that
// answer. Promises are tracked like the expression itself, so a case whose promise fails
// disappears.
#include "grammar/expression/dfa_builder.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "grammar/base/edge_list.h"
#include "grammar/base/list_table.h"

namespace gen::grammar {
namespace {

using Nodes = std::vector<uint32_t>;

constexpr size_t kPartsPerNode = 16;  // that an expression may have, on average

struct NodeGraph {
  enum class On : uint8_t { kNothing, kBytes, kAssert };
  struct Edge {
    uint32_t to;
    On on;
    uint32_t which;  // a set; an assertion
  };
  struct Ends {
    uint32_t start = 0;
    uint32_t final = 0;
  };
  std::vector<ShortList<Edge, 2>> from;
  Ends main;
  std::vector<Ends> bodies;  // by assertion; of kAhead and kBehind
  std::vector<bool> used;    // by assertion
};

// Builds the node graph of an expression. False if it takes more than `most` nodes, or names
// tokens. Parts are counted, too: of rules that lead to themselves without a text there are ever
// more between the same nodes.
class Writer {
 public:
  Writer(const Expressions& all, size_t most, NodeGraph* out)
      : all_(all), most_(most), out_(*out) {}

  bool run(ExprId expr) {
    out_.bodies.resize(all_.assertions().size());
    out_.used.resize(all_.assertions().size(), false);
    out_.main = {node(), node()};
    open_.push_back({expr, out_.main.start, out_.main.final});
    while (!open_.empty()) {
      if (out_.from.size() + open_.size() > most_ || ++n_parts_ > kPartsPerNode * most_)
        return false;
      if (!goes_on(all_.building(), 1)) return false;
      const Part part = open_.back();
      open_.pop_back();
      if (!write(part)) return false;
    }
    return true;
  }

 private:
  struct Part {
    ExprId expr;
    uint32_t from;
    uint32_t to;
  };

  uint32_t node() {
    out_.from.emplace_back();
    return static_cast<uint32_t>(out_.from.size() - 1);
  }
  void nothing(uint32_t from, uint32_t to) {
    out_.from[from].push_back({to, NodeGraph::On::kNothing, 0});
  }

  bool write(const Part& part) {
    const Expr& expr = all_.at(part.expr);
    switch (expr.kind) {
      case Kind::kNever:
        return true;
      case Kind::kEmpty:
        nothing(part.from, part.to);
        return true;
      case Kind::kBytes:
        out_.from[part.from].push_back({part.to, NodeGraph::On::kBytes, expr.first});
        return true;
      case Kind::kToken:
      case Kind::kMembers:
      case Kind::kLimited:
        return false;
      case Kind::kSequence: {
        uint32_t from = part.from;
        const auto parts = all_.parts(expr);
        for (size_t i = 0; i < parts.size(); ++i) {
          const uint32_t to = i + 1 == parts.size() ? part.to : node();
          open_.push_back({parts[i], from, to});
          from = to;
        }
        return true;
      }
      case Kind::kChoice:
        for (const ExprId one : all_.parts(expr)) open_.push_back({one, part.from, part.to});
        return true;
      case Kind::kRule:
        open_.push_back({all_.rules()[expr.first], part.from, part.to});
        return true;
      case Kind::kRepeat:
        return repeat(expr, part);
      case Kind::kDiagram: {
        const Diagram& diagram = all_.diagram_of(expr);
        const auto first = static_cast<uint32_t>(out_.from.size());
        out_.from.resize(out_.from.size() + diagram.final.size());
        nothing(part.from, first);
        for (uint32_t k = 0; k < diagram.final.size(); ++k) {
          if (diagram.final[k]) nothing(first + k, part.to);
        }
        for (const Diagram::Transition& way : diagram.transitions) {
          open_.push_back({way.reads, first + way.from, first + way.to});
        }
        return true;
      }
      case Kind::kAssert: {
        out_.from[part.from].push_back({part.to, NodeGraph::On::kAssert, expr.first});
        if (out_.used[expr.first]) return true;
        out_.used[expr.first] = true;
        const Assertion& assertion = all_.assertions()[expr.first];
        if (assertion.ask == Ask::kAhead || assertion.ask == Ask::kBehind) {
          const uint32_t start = node();
          const uint32_t final = node();
          out_.bodies[expr.first] = {start, final};
          open_.push_back({assertion.body, start, final});
        }
        return true;
      }
    }
    return false;
  }

  bool repeat(const Expr& expr, const Part& part) {
    const bool endless = expr.max == kUnbounded;
    const uint32_t copies = endless ? std::max(expr.min, 1U) : expr.max;
    if (copies > most_) return false;
    uint32_t from = node();
    nothing(part.from, from);
    for (uint32_t i = 0; i < copies; ++i) {
      if (i >= expr.min) nothing(from, part.to);
      const uint32_t to = node();
      open_.push_back({expr.first, from, to});
      if (endless && i + 1 == copies) nothing(to, from);
      from = to;
    }
    nothing(from, part.to);
    return true;
  }

  const Expressions& all_;
  const size_t most_;
  NodeGraph& out_;
  std::vector<Part> open_;
  size_t n_parts_ = 0;
};

struct Promise {
  uint32_t assertion = 0;
  bool matches = false;
  Nodes nodes;  // nodes where its body may be
  auto operator<=>(const Promise&) const = default;
};

struct Case {
  std::vector<Nodes> behind;  // by lookbehind assertion
  std::vector<Promise> promises;
  Nodes main;
  auto operator<=>(const Case&) const = default;
};

struct BuiltState {
  bool at_start = false;
  bool behind_word = false;
  std::vector<Case> cases;
  auto operator<=>(const BuiltState&) const = default;
};

constexpr uint32_t kTextEnd = 256;
constexpr uint64_t kWorkPerList = 8;         // to copy one, in visited nodes
constexpr uint64_t kWorkPerBuiltState = 64;  // per state of the result
constexpr ptrdiff_t kMaxLooks = 32;          // lookaheads and lookbehinds; they nest on the stack

bool is_word(uint32_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         (byte >= 'a' && byte <= 'z');
}

class Builder {
 public:
  Builder(const Expressions& all, const NodeGraph& graph, const DfaFuel& fuel)
      : all_(all), graph_(graph), fuel_(fuel), work_(fuel_), seen_(graph.from.size(), 0) {
    for (uint32_t a = 0; a < all.assertions().size(); ++a) {
      if (graph.used[a] && all.assertions()[a].ask == Ask::kBehind) behinds_.push_back(a);
    }
    find_classes();
  }

  Result<Dfa> run() {
    BuiltState start;
    start.at_start = true;
    Case first;
    first.behind.resize(behinds_.size());
    first.main = {graph_.main.start};
    start.cases.push_back(std::move(first));
    Dfa made;
    (void)number(std::move(start));
    for (size_t i = 0; i < order_.size(); ++i) {
      Dfa::State state;
      state.final = next(*order_[i], kTextEnd, nullptr);
      std::array<uint32_t, 256> target{};  // + 1, by class
      for (size_t c = 0; c < samples_.size(); ++c) {
        BuiltState to;
        (void)next(*order_[i], samples_[c], &to);
        if (!to.cases.empty()) target[c] = number(std::move(to)) + 1;
        if (order_.size() > fuel_.states) {
          return error(Code::kGrammar, "an automaton of more than %zu states", fuel_.states);
        }
        if (work_.is_over()) return work_.status();
      }
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t to = target[classes_[byte]];
        const auto low = static_cast<uint8_t>(byte);
        while (byte < 255 && target[classes_[byte + 1]] == to) ++byte;
        if (to > 0) state.edges.push_back({low, static_cast<uint8_t>(byte), to - 1});
      }
      made.states.push_back(std::move(state));
    }
    return minimise(made);
  }

 private:
  // Knowledge about the answers at one position.
  enum Answer : int8_t { kUnknown = -1, kNo = 0, kYes = 1, kNotAsked = 2 };
  using Answers = std::vector<int8_t>;

  // One evaluation of a state's cases on an input: a byte, or the end of the text.
  struct Evaluation {
    const BuiltState& state;
    uint32_t next;  // byte, or kTextEnd
    bool* member;
    std::vector<Case>* out;
  };

  uint32_t number(BuiltState state) {
    for (const Case& one : state.cases) {
      work_ += kWorkPerList * (1 + one.promises.size() + one.behind.size()) + one.main.size();
    }
    const auto [place, added] = known_.try_emplace(std::move(state), order_.size());
    if (added) order_.push_back(&place->first);
    return static_cast<uint32_t>(place->second);
  }

  // Byte classes: bytes that no set here distinguishes.
  void find_classes() {
    std::vector<std::vector<bool>> marks(256);
    std::vector<bool> used;
    for (const auto& edges : graph_.from) {
      for (const NodeGraph::Edge& edge : edges) {
        if (edge.on != NodeGraph::On::kBytes) continue;
        if (used.size() <= edge.which) used.resize(edge.which + 1, false);
        used[edge.which] = true;
      }
    }
    for (uint32_t byte = 0; byte < 256; ++byte) {
      marks[byte].push_back(is_word(byte));
      for (uint32_t s = 0; s < used.size(); ++s) {
        if (used[s]) marks[byte].push_back(all_.set(s).has(static_cast<uint8_t>(byte)));
      }
    }
    std::map<std::vector<bool>, uint8_t> numbers;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const auto [place, added] =
          numbers.try_emplace(marks[byte], static_cast<uint8_t>(samples_.size()));
      if (added) samples_.push_back(byte);
      classes_[byte] = place->second;
    }
  }

  // The state after `byte`; for kTextEnd whether the text is a member.
  bool next(const BuiltState& state, uint32_t byte, BuiltState* to) {
    bool member = false;
    std::vector<Case> cases;
    const Evaluation evaluation = {state, byte, &member, &cases};
    for (const Case& one : state.cases) {
      evaluate(evaluation, one, Answers(all_.assertions().size(), kUnknown));
      if (member || work_.is_over()) break;
    }
    if (to == nullptr) return member;
    to->behind_word = is_word(byte);
    std::sort(cases.begin(), cases.end());
    for (Case& one : cases) {  // merges cases that differ only in `main`
      if (!to->cases.empty() && to->cases.back().behind == one.behind &&
          to->cases.back().promises == one.promises) {
        Nodes& main = to->cases.back().main;
        main.insert(main.end(), one.main.begin(), one.main.end());
        std::sort(main.begin(), main.end());
        main.erase(std::unique(main.begin(), main.end()), main.end());
      } else {
        to->cases.push_back(std::move(one));
      }
    }
    return member;
  }

  // The epsilon closure. It stops at a lookahead whose answer is not known, and returns that
  // assertion. `main` need not know: without an answer it has no transition there.
  std::optional<uint32_t> close(const Evaluation& evaluation, const Answers& answers, bool main,
                                Nodes& nodes) {
    ++round_;
    for (const uint32_t node : nodes) seen_[node] = round_;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto& edges = graph_.from[nodes[i]];
      work_ += 1 + edges.size();
      for (const NodeGraph::Edge& edge : edges) {
        if (edge.on == NodeGraph::On::kBytes || seen_[edge.to] == round_) continue;
        if (edge.on == NodeGraph::On::kAssert) {
          const int8_t answer = answer_to(evaluation, answers, edge.which);
          if (answer == kUnknown || (answer == kNotAsked && !main)) return edge.which;
          if (answer == kNotAsked) continue;
          if ((answer == kYes) == all_.assertions()[edge.which].negated) continue;
        }
        seen_[edge.to] = round_;
        nodes.push_back(edge.to);
      }
    }
    return std::nullopt;
  }

  // The answer to the question itself, whether or not it is negated.
  int8_t answer_to(const Evaluation& evaluation, const Answers& answers, uint32_t assertion) {
    const bool word = evaluation.next != kTextEnd && is_word(evaluation.next);
    switch (all_.assertions()[assertion].ask) {
      case Ask::kStart:
        return evaluation.state.at_start ? kYes : kNo;
      case Ask::kEnd:
        return evaluation.next == kTextEnd ? kYes : kNo;
      case Ask::kWord:
        return word != evaluation.state.behind_word ? kYes : kNo;
      default:
        return answers[assertion];
    }
  }

  void branch(const Evaluation& evaluation, const Case& one, Answers answers, uint32_t assertion,
              std::initializer_list<int8_t> ways) {
    if (work_.is_over()) return;
    for (const int8_t way : ways) {
      answers[assertion] = way;
      evaluate(evaluation, one, answers);
    }
  }

  // Adds the cases into which `one` is split. Recursion is at most twice as deep as the number of
  // assertions.
  void evaluate(const Evaluation& evaluation, const Case& one, Answers answers) {
    if (work_.is_over()) return;
    work_ += answers.size() + kWorkPerList * (2 + one.promises.size() + one.behind.size());
    for (const Nodes& nodes : one.behind) work_ += nodes.size();
    for (const Promise& promise : one.promises) work_ += promise.nodes.size();
    // Lookbehind; bodies of assertions only ask older assertions.
    std::vector<Nodes> behind = one.behind;
    for (size_t b = 0; b < behinds_.size(); ++b) {
      const NodeGraph::Ends& ends = graph_.bodies[behinds_[b]];
      if (std::find(behind[b].begin(), behind[b].end(), ends.start) == behind[b].end()) {
        behind[b].push_back(ends.start);
      }
      if (const auto asked = close(evaluation, answers, false, behind[b])) {
        return branch(evaluation, one, answers, *asked, {kNo, kYes});
      }
      const bool matched =
          std::find(behind[b].begin(), behind[b].end(), ends.final) != behind[b].end();
      answers[behinds_[b]] = matched ? kYes : kNo;
    }
    std::vector<Promise> promises = one.promises;
    for (uint32_t a = 0; a < answers.size(); ++a) {
      if (all_.assertions()[a].ask != Ask::kAhead) continue;
      if (answers[a] != kNo && answers[a] != kYes) continue;
      promises.push_back({a, answers[a] == kYes, {graph_.bodies[a].start}});
    }
    std::vector<Promise> kept;
    for (Promise& promise : promises) {
      if (const auto asked = close(evaluation, answers, false, promise.nodes)) {
        return branch(evaluation, one, answers, *asked, {kNo, kYes});
      }
      const uint32_t final = graph_.bodies[promise.assertion].final;
      const bool matched =
          std::find(promise.nodes.begin(), promise.nodes.end(), final) != promise.nodes.end();
      if (matched && !promise.matches) return;
      if (matched) continue;
      if (evaluation.next == kTextEnd) {
        if (promise.matches) return;
        continue;
      }
      move(evaluation.next, &promise.nodes);
      if (promise.nodes.empty() && promise.matches) return;
      if (!promise.nodes.empty()) kept.push_back(std::move(promise));
    }
    Nodes main = one.main;
    if (const auto asked = close(evaluation, answers, true, main)) {
      const bool negated = all_.assertions()[*asked].negated;
      return branch(evaluation, one, answers, *asked, {negated ? kNo : kYes, kNotAsked});
    }
    if (evaluation.next == kTextEnd) {
      *evaluation.member |= std::find(main.begin(), main.end(), graph_.main.final) != main.end();
      return;
    }
    move(evaluation.next, &main);
    if (main.empty()) return;
    for (Nodes& nodes : behind) move(evaluation.next, &nodes);
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    evaluation.out->push_back({std::move(behind), std::move(kept), std::move(main)});
  }

  // The nodes after one byte, in order.
  void move(uint32_t byte, Nodes* nodes) {
    Nodes to;
    for (const uint32_t node : *nodes) {
      for (const NodeGraph::Edge& edge : graph_.from[node]) {
        if (edge.on == NodeGraph::On::kBytes &&
            all_.set(edge.which).has(static_cast<uint8_t>(byte))) {
          to.push_back(edge.to);
        }
      }
    }
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    *nodes = std::move(to);
  }

  const Expressions& all_;
  const NodeGraph& graph_;
  const DfaFuel fuel_;
  DfaWork work_;
  std::vector<uint32_t> behinds_;
  std::array<uint8_t, 256> classes_{};
  std::vector<uint32_t> samples_;  // a byte of each class
  std::map<BuiltState, size_t> known_;
  std::vector<const BuiltState*> order_;
  std::vector<uint64_t> seen_;  // by node: the last round
  uint64_t round_ = 0;
};

// For expressions that only ask for the start and the end of the text: a state is then a plain set
// of nodes. Same result as Builder, several times as fast.
class PlainBuilder {
 public:
  PlainBuilder(const Expressions& all, const NodeGraph& graph, const DfaFuel& fuel)
      : all_(all), graph_(graph), fuel_(fuel), work_(fuel_), seen_(graph.from.size(), 0) {
    find_classes();
  }

  static bool can(const Expressions& all, const NodeGraph& graph) {
    for (uint32_t a = 0; a < graph.used.size(); ++a) {
      const Assertion& one = all.assertions()[a];
      const bool plain = !one.negated && (one.ask == Ask::kStart || one.ask == Ask::kEnd);
      if (graph.used[a] && !plain) return false;
    }
    return true;
  }

  Result<Dfa> run() {
    (void)number({graph_.main.start});
    Dfa made;
    std::vector<Nodes> targets(samples_.size());
    std::vector<uint32_t> to(samples_.size());  // + 1
    for (uint32_t i = 0; i < order_.size(); ++i) {
      for (Nodes& list : targets) list.clear();
      for (const uint32_t node : order_[i]) {
        if (node == kEnd) break;
        for (const NodeGraph::Edge& edge : graph_.from[node]) {
          if (edge.on != NodeGraph::On::kBytes) continue;
          work_ += classes_of_[edge.which].size();
          for (const uint8_t one : classes_of_[edge.which]) targets[one].push_back(edge.to);
        }
      }
      for (size_t c = 0; c < targets.size(); ++c) {
        to[c] = targets[c].empty() ? 0 : number(targets[c]) + 1;
      }
      if (order_.size() > fuel_.states) {
        return error(Code::kGrammar, "an automaton of more than %zu states", fuel_.states);
      }
      if (!goes_on(fuel_.building, kWorkPerBuiltState) || work_.is_over()) return work_.status();
      Dfa::State& state = made.states.emplace_back();
      state.final = !order_[i].empty() && order_[i].back() == kEnd;
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t next = to[classes_[byte]];
        const auto low = static_cast<uint8_t>(byte);
        while (byte < 255 && to[classes_[byte + 1]] == next) ++byte;
        if (next > 0) state.edges.push_back({low, static_cast<uint8_t>(byte), next - 1});
      }
    }
    return minimise(made);
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;  // marks an end among nodes
  // The state for the epsilon closure of these nodes.
  uint32_t number(const Nodes& from) {
    const auto [known, added] = from_.number_of(from);
    if (!added) return states_[known];
    closed(from, order_.size() == 0, &closed_);
    work_ += kWorkPerList + closed_.size();
    states_.push_back(order_.number_of(closed_).first);
    return states_[known];
  }

  // In order: nodes that read a byte, and kEnd if the text may end here.
  void closed(const Nodes& from, bool at_start, Nodes* out) {
    Nodes& reached = *out;
    reached.clear();
    Nodes asked;  // nodes after an assertion of the end
    const auto walk = [&](Nodes* nodes, bool at_end) {
      for (size_t i = 0; i < nodes->size(); ++i) {
        const auto& edges = graph_.from[(*nodes)[i]];
        work_ += 1 + edges.size();
        for (const NodeGraph::Edge& edge : edges) {
          if (edge.on == NodeGraph::On::kBytes) continue;
          if (edge.on == NodeGraph::On::kAssert) {
            const bool of_end = all_.assertions()[edge.which].ask == Ask::kEnd;
            if (of_end && !at_end) asked.push_back(edge.to);
            if (of_end ? !at_end : !at_start) continue;
          }
          if (seen_[edge.to] == round_) continue;
          seen_[edge.to] = round_;
          nodes->push_back(edge.to);
        }
      }
    };
    const auto begin = [&](const Nodes& nodes, Nodes* to) {
      for (const uint32_t node : nodes) {
        if (seen_[node] == round_) continue;
        seen_[node] = round_;
        to->push_back(node);
      }
    };
    ++round_;
    begin(from, &reached);
    walk(&reached, false);
    bool end = seen_[graph_.main.final] == round_;
    if (!end && !asked.empty()) {
      Nodes there;
      begin(Nodes(asked), &there);
      walk(&there, true);
      end = seen_[graph_.main.final] == round_;
    }
    std::erase_if(reached, [&](uint32_t node) {
      const auto& edges = graph_.from[node];
      return std::none_of(edges.begin(), edges.end(), [](const NodeGraph::Edge& edge) {
        return edge.on == NodeGraph::On::kBytes;
      });
    });
    std::sort(reached.begin(), reached.end());
    if (end) reached.push_back(kEnd);
  }

  // Byte classes: bytes that no set here distinguishes.
  void find_classes() {
    classes_of_.resize(1);
    std::vector<bool> used;
    for (const auto& edges : graph_.from) {
      for (const NodeGraph::Edge& edge : edges) {
        if (edge.on != NodeGraph::On::kBytes) continue;
        if (used.size() <= edge.which) used.resize(edge.which + size_t{1}, false);
        used[edge.which] = true;
      }
    }
    uint32_t count = 1;
    for (uint32_t s = 0; s < used.size(); ++s) {
      if (!used[s]) continue;
      std::array<uint16_t, 256> inside{};  // + 1, by class: its part in the set
      std::array<uint16_t, 256> sizes{};
      std::array<uint16_t, 256> parts{};
      for (const uint8_t one : classes_) ++sizes[one];
      for (uint32_t byte = 0; byte < 256; ++byte) {
        if (all_.set(s).has(static_cast<uint8_t>(byte))) ++parts[classes_[byte]];
      }
      for (uint32_t byte = 0; byte < 256; ++byte) {
        uint8_t& one = classes_[byte];
        if (!all_.set(s).has(static_cast<uint8_t>(byte)) || parts[one] == sizes[one]) continue;
        if (inside[one] == 0) inside[one] = static_cast<uint16_t>(++count);
        one = static_cast<uint8_t>(inside[one] - 1);
      }
    }
    samples_.assign(count, 0);
    for (uint32_t byte = 0; byte < 256; ++byte) samples_[classes_[byte]] = byte;
    classes_of_.resize(used.size());
    for (uint32_t s = 0; s < used.size(); ++s) {
      for (uint32_t one = 0; used[s] && one < count; ++one) {
        if (all_.set(s).has(static_cast<uint8_t>(samples_[one]))) {
          classes_of_[s].push_back(static_cast<uint8_t>(one));
        }
      }
    }
  }

  const Expressions& all_;
  const NodeGraph& graph_;
  const DfaFuel fuel_;
  DfaWork work_;
  std::array<uint8_t, 256> classes_{};
  std::vector<uint32_t> samples_;                 // a byte of each class
  std::vector<std::vector<uint8_t>> classes_of_;  // by set
  ListTable<uint32_t> from_;                      // of nodes that a byte leads to
  std::vector<uint32_t> states_;                  // by these
  ListTable<uint32_t> order_;                     // of nodes, by state
  Nodes closed_;                                  // kept for its memory
  std::vector<uint64_t> seen_;                    // by node: the last round
  uint64_t round_ = 0;
};

}  // namespace

Result<Dfa> build_dfa(const Expressions& all, ExprId expr, const DfaFuel& fuel) {
  NodeGraph graph;
  if (!Writer(all, 4 * fuel.states, &graph).run(expr)) {
    if (all.building() != nullptr) GEN_TRY(all.building()->status());
    return error(Code::kGrammar, "an automaton of more than %zu states", fuel.states);
  }
  const auto looks = std::count_if(graph.bodies.begin(), graph.bodies.end(),
                                   [](const auto& body) { return body.final != 0; });
  if (looks > kMaxLooks) {
    return error(Code::kGrammar, "more than %td places where it looks ahead or behind", kMaxLooks);
  }
  if (PlainBuilder::can(all, graph)) return PlainBuilder(all, graph, fuel).run();
  return Builder(all, graph, fuel).run();
}

}  // namespace gen::grammar
