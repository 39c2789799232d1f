// SPDX-License-Identifier: Apache-2.0
// From an NFA with epsilon edges to an automaton, see automaton.h.
#include "grammar/machine/automaton.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include "grammar/base/list_table.h"

namespace gen::grammar {
namespace {

constexpr uint64_t kWorkPerNode = 8;  // and per edge of the input

// Edges by their source, and epsilon closures.
class Reach {
 public:
  explicit Reach(const Nfa& nfa) : edges_(nfa.edges.size()), begins_(nfa.n_nodes + 1, 0) {
    for (const Nfa::Edge& edge : nfa.edges) ++begins_[edge.from + 1];
    for (uint32_t i = 0; i < nfa.n_nodes; ++i) begins_[i + 1] += begins_[i];
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (const Nfa::Edge& edge : nfa.edges) edges_[next[edge.from]++] = edge;
    seen_.resize(nfa.n_nodes, 0);
  }

  [[nodiscard]] std::span<const Nfa::Edge> from(uint32_t node) const {
    return std::span(edges_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

  // The relevant nodes of the closure (start, end, and nodes with a non-epsilon edge), in order.
  void close(std::span<const uint32_t> seeds, std::vector<uint32_t>* out) {
    ++round_;
    out->clear();
    open_.assign(seeds.begin(), seeds.end());
    for (const uint32_t seed : seeds) seen_[seed] = round_;
    while (!open_.empty()) {
      const uint32_t node = open_.back();
      open_.pop_back();
      // The start is relevant, so that no other node is merged with it.
      bool matters = node == Nfa::kFinal || node == Nfa::kStart;
      for (const Nfa::Edge& edge : from(node)) {
        if (edge.on != Nfa::On::kNothing) {
          matters = true;
        } else if (seen_[edge.to] != round_) {
          seen_[edge.to] = round_;
          open_.push_back(edge.to);
        }
      }
      if (matters) out->push_back(node);
      work_ += 1 + from(node).size();
    }
    std::sort(out->begin(), out->end());
  }

  [[nodiscard]] size_t work() const noexcept { return work_; }
  // False if the building has stopped.
  bool tell(Building* building) noexcept {
    const size_t more = work_ - told_;
    told_ = work_;
    return goes_on(building, more);
  }

 private:
  std::vector<Nfa::Edge> edges_;
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> seen_;
  std::vector<uint32_t> open_;
  uint32_t round_ = 0;
  size_t work_ = 0;
  size_t told_ = 0;
};

void add_ranges(const ByteSet& set, uint32_t target, EdgeList* out) {
  for (uint32_t word = 0; word < 4; ++word) {
    uint64_t bits = set.words[word];
    for (uint32_t at = 0; bits != 0;) {
      const auto skip = static_cast<uint32_t>(std::countr_zero(bits));
      bits >>= skip;
      at += skip;
      const auto run = static_cast<uint32_t>(std::countr_one(bits));
      const auto low = static_cast<uint8_t>(word * 64 + at);
      const auto high = static_cast<uint8_t>(word * 64 + at + run - 1);
      const bool joins = at == 0 && word > 0 && !out->empty() && out->back().target == target &&
                         out->back().high + 1 == low;
      if (joins) {
        out->back().high = high;
      } else {
        out->push_back({low, high, target});
      }
      if (run == 64) break;
      bits >>= run;
      at += run;
    }
  }
}

class Subsets {
 public:
  Subsets(const Nfa& nfa, Reach& reach, Automaton* out, Building* building)
      : nfa_(nfa), reach_(reach), out_(*out), building_(building) {}

  bool run(size_t max_nodes, size_t max_work) {
    const uint32_t start = Nfa::kStart;
    (void)node_of({&start, 1});
    for (uint32_t i = 0; i < subsets_.size(); ++i) {
      if (subsets_.size() > max_nodes || reach_.work() > max_work) return false;
      if (!reach_.tell(building_) || !goes_on(building_, kWorkPerNode)) return false;
      expand(i);
    }
    out_.nodes[0].final = false;
    return true;
  }

 private:
  uint32_t node_of(std::span<const uint32_t> seeds) {
    if (seeds.size() != 1) return closed_node(seeds);
    if (of_one_.empty()) of_one_.resize(nfa_.n_nodes, UINT32_MAX);
    uint32_t& known = of_one_[seeds[0]];
    if (known == UINT32_MAX) known = closed_node(seeds);
    return known;
  }

  uint32_t closed_node(std::span<const uint32_t> seeds) {
    reach_.close(seeds, &closed_);
    const auto [node, added] = subsets_.number_of(closed_);
    if (added) {
      Automaton::Node& made = out_.nodes.emplace_back();
      made.final = std::binary_search(closed_.begin(), closed_.end(), Nfa::kFinal);
      // Counted nodes read different things than others, so all nodes are counted or none.
      made.counted = std::any_of(closed_.begin(), closed_.end(),
                                 [&](uint32_t one) { return nfa_.is_counted(one); });
    }
    return node;
  }

  void expand(uint32_t index) {
    sets_.clear();
    calls_.clear();
    tokens_.clear();
    for (const uint32_t node : subsets_[index]) {
      for (const Nfa::Edge& edge : reach_.from(node)) {
        if (edge.on == Nfa::On::kBytes) sets_.emplace_back(&nfa_.sets[edge.label], edge.to);
        if (edge.on == Nfa::On::kCall) calls_.emplace_back(edge.label, edge.to);
        if (edge.on == Nfa::On::kToken) tokens_.emplace_back(edge.label, edge.to);
      }
    }
    EdgeList bytes = byte_edges();
    out_.nodes[index].bytes = std::move(bytes);
    each_label(&calls_, [&](Call call, uint32_t target) {
      out_.nodes[index].calls.push_back({call, target});
    });
    each_label(&tokens_, [&](uint64_t term, uint32_t target) {
      out_.nodes[index].tokens.push_back({static_cast<uint32_t>(term), target});
    });
  }

  using Labels = std::vector<std::pair<uint64_t, uint32_t>>;

  // Each label once, in order, with the node for the set of its targets.
  template <typename Visit>
  void each_label(Labels* labels, Visit visit) {
    std::sort(labels->begin(), labels->end());
    labels->erase(std::unique(labels->begin(), labels->end()), labels->end());
    for (size_t i = 0; i < labels->size();) {
      const uint64_t label = (*labels)[i].first;
      targets_.clear();
      for (; i < labels->size() && (*labels)[i].first == label; ++i) {
        targets_.push_back((*labels)[i].second);
      }
      visit(label, node_of(targets_));
    }
  }

  EdgeList byte_edges() {
    EdgeList edges;
    if (sets_.size() == 1) {
      add_ranges(*sets_[0].first, node_of({&sets_[0].second, 1}), &edges);
      return edges;
    }
    if (sets_.empty()) return edges;
    if (apart()) {
      for (const auto& [set, target] : sets_) add_ranges(*set, target, &edges);
      std::sort(edges.begin(), edges.end(),
                [](const ByteEdge& a, const ByteEdge& b) { return a.low < b.low; });
      size_t kept = 0;
      for (size_t i = 0; i < edges.size(); ++i) {
        const uint32_t target = node_of({&edges[i].target, 1});
        if (kept > 0 && edges[kept - 1].target == target &&
            edges[kept - 1].high + 1 == edges[i].low) {
          edges[kept - 1].high = edges[i].high;
        } else {
          edges[kept++] = {edges[i].low, edges[i].high, target};
        }
      }
      edges.shrink(kept);
      return edges;
    }
    std::vector<std::vector<uint32_t>>& ways = ways_;
    ways.resize(256);
    for (auto& way : ways) way.clear();
    for (const auto& [set, target] : sets_) {
      for (size_t word = 0; word < 4; ++word) {
        for (uint64_t bits = set->words[word]; bits != 0; bits &= bits - 1) {
          ways[word * 64 + static_cast<size_t>(std::countr_zero(bits))].push_back(target);
        }
      }
    }
    std::map<std::vector<uint32_t>, uint32_t> made;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (ways[byte].empty()) continue;
      const auto low = static_cast<uint8_t>(byte);
      while (byte < 255 && ways[byte + 1] == ways[low]) ++byte;
      auto place = made.find(ways[low]);
      if (place == made.end()) place = made.emplace(ways[low], node_of(ways[low])).first;
      edges.push_back({low, static_cast<uint8_t>(byte), place->second});
    }
    return edges;
  }

  // Whether the sets are disjoint.
  [[nodiscard]] bool apart() const {
    ByteSet united;
    for (const auto& [set, target] : sets_) {
      for (size_t word = 0; word < 4; ++word) {
        if ((united.words[word] & set->words[word]) != 0) return false;
        united.words[word] |= set->words[word];
      }
    }
    return true;
  }

  const Nfa& nfa_;
  Reach& reach_;
  Automaton& out_;
  Building* const building_;
  std::vector<std::vector<uint32_t>> ways_;  // by byte; kept for their memory
  ListTable<uint32_t> subsets_;              // by node
  std::vector<uint32_t> closed_;
  std::vector<uint32_t> of_one_;  // by the only node that leads there
  std::vector<std::pair<const ByteSet*, uint32_t>> sets_;
  Labels calls_;
  Labels tokens_;
  std::vector<uint32_t> targets_;
};

// Epsilon removal: a node for each target of a non-epsilon edge, with the edges of its epsilon
// closure.
bool without_empty(const Nfa& nfa, Reach& reach, size_t max_edges, Automaton* out,
                   Building* building) {
  std::vector<uint32_t> number(nfa.n_nodes, UINT32_MAX);
  std::vector<uint32_t> listed = {Nfa::kStart};
  number[Nfa::kStart] = 0;
  const auto number_of = [&](uint32_t node) {
    if (number[node] == UINT32_MAX) {
      number[node] = static_cast<uint32_t>(listed.size());
      listed.push_back(node);
    }
    return number[node];
  };
  std::vector<uint32_t> closed;
  size_t n_edges = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    Automaton::Node made;
    reach.close({&listed[i], 1}, &closed);
    made.counted = nfa.is_counted(listed[i]);
    for (const uint32_t node : closed) {
      made.final |= node == Nfa::kFinal && i != 0;
      for (const Nfa::Edge& edge : reach.from(node)) {
        if (edge.on == Nfa::On::kNothing) continue;
        const uint32_t target = number_of(edge.to);
        if (edge.on == Nfa::On::kBytes) add_ranges(nfa.sets[edge.label], target, &made.bytes);
        if (edge.on == Nfa::On::kCall) made.calls.push_back({edge.label, target});
        if (edge.on == Nfa::On::kToken) {
          made.tokens.push_back({static_cast<uint32_t>(edge.label), target});
        }
      }
    }
    std::sort(made.bytes.begin(), made.bytes.end(), [](const ByteEdge& a, const ByteEdge& b) {
      return std::pair(a.low, a.target) < std::pair(b.low, b.target);
    });
    uint32_t high = 0;
    for (size_t k = 0; k < made.bytes.size(); ++k) {
      made.several |= k > 0 && made.bytes[k].low <= high;
      high = std::max<uint32_t>(high, made.bytes[k].high);
    }
    n_edges += made.bytes.size() + made.calls.size() + made.tokens.size();
    if (n_edges > max_edges || !reach.tell(building)) return false;
    if (!goes_on(building, kWorkPerNode + made.bytes.size())) return false;
    out->nodes.push_back(std::move(made));
  }
  return true;
}

// Input that is already deterministic, as most diagrams are: no subsets are needed. Allowed epsilon
// edges are one from the start, and those from any node to the end. False for anything else.
class Plain {
 public:
  Plain(const Nfa& nfa, const Reach& reach, Automaton* out)
      : nfa_(nfa), reach_(reach), out_(*out), numbers_(nfa.n_nodes, UINT32_MAX) {}

  bool run() {
    if (!reach_.from(Nfa::kFinal).empty()) return false;
    listed_.reserve(nfa_.n_nodes);
    out_.nodes.reserve(nfa_.n_nodes);
    number(Nfa::kStart);
    for (size_t i = 0; i < listed_.size(); ++i) {
      if (!add(listed_[i])) return false;
    }
    out_.nodes[0].final = false;
    return true;
  }

 private:
  uint32_t number(uint32_t node) {
    if (numbers_[node] == UINT32_MAX) {
      numbers_[node] = static_cast<uint32_t>(listed_.size());
      listed_.push_back(node);
    }
    return numbers_[node];
  }

  bool add(uint32_t node) {
    std::span<const Nfa::Edge> edges = reach_.from(node);
    if (node == Nfa::kStart && edges.size() == 1 && edges[0].on == Nfa::On::kNothing) {
      if (edges[0].to == Nfa::kFinal) edges = {};
      if (!edges.empty()) edges = reach_.from(edges[0].to);
    }
    Automaton::Node made;
    made.final = node == Nfa::kFinal;
    made.counted = nfa_.is_counted(node);
    bytes_.shrink(0);
    ByteSet united;
    for (const Nfa::Edge& edge : edges) {
      switch (edge.on) {
        case Nfa::On::kNothing:
          if (edge.to != Nfa::kFinal) return false;
          made.final = true;
          break;
        case Nfa::On::kBytes: {
          const ByteSet& set = nfa_.sets[edge.label];
          for (size_t word = 0; word < 4; ++word) {
            if ((united.words[word] & set.words[word]) != 0) return false;
            united.words[word] |= set.words[word];
          }
          add_ranges(set, edge.to, &bytes_);
          break;
        }
        case Nfa::On::kCall:
          made.calls.push_back({edge.label, edge.to});
          break;
        case Nfa::On::kToken:
          made.tokens.push_back({static_cast<uint32_t>(edge.label), edge.to});
          break;
      }
    }
    std::sort(bytes_.begin(), bytes_.end(),
              [](const ByteEdge& a, const ByteEdge& b) { return a.low < b.low; });
    size_t kept = 0;
    for (const ByteEdge& edge : bytes_) {
      const uint32_t target = number(edge.target);
      if (kept > 0 && bytes_[kept - 1].target == target && bytes_[kept - 1].high + 1 == edge.low) {
        bytes_[kept - 1].high = edge.high;
      } else {
        bytes_[kept++] = {edge.low, edge.high, target};
      }
    }
    made.bytes.assign({bytes_.begin(), kept});
    if (!finish(&made.calls, [](const auto& one) { return one.call; }) ||
        !finish(&made.tokens, [](const auto& one) { return one.term; })) {
      return false;
    }
    out_.nodes.push_back(std::move(made));
    return true;
  }

  // In order; false if one of them has two targets.
  template <typename Edges, typename LabelOf>
  bool finish(Edges* edges, LabelOf label_of) {
    std::sort(edges->begin(), edges->end(),
              [&](const auto& a, const auto& b) { return label_of(a) < label_of(b); });
    for (size_t i = 0; i < edges->size(); ++i) {
      if (i > 0 && label_of((*edges)[i - 1]) == label_of((*edges)[i])) return false;
      (*edges)[i].target = number((*edges)[i].target);
    }
    return true;
  }

  const Nfa& nfa_;
  const Reach& reach_;
  Automaton& out_;
  std::vector<uint32_t> numbers_;  // by node
  std::vector<uint32_t> listed_;
  EdgeList bytes_;  // kept for its memory
};

}  // namespace

size_t Automaton::n_edges() const noexcept {
  size_t sum = 0;
  for (const Node& node : nodes) sum += node.bytes.size() + node.calls.size() + node.tokens.size();
  return sum;
}

bool determinise(const Nfa& nfa, size_t max_edges, Automaton* out, Building* building) {
  if (!goes_on(building, kWorkPerNode * (nfa.n_nodes + nfa.edges.size()))) return false;
  const size_t max_nodes = 256 + 4 * static_cast<size_t>(nfa.n_nodes);
  const size_t max_work = 100'000 + 200 * nfa.edges.size();
  Reach reach(nfa);
  if (Plain(nfa, reach, out).run()) return out->n_edges() <= max_edges;
  *out = Automaton();
  Subsets subsets(nfa, reach, out, building);
  if (subsets.run(max_nodes, max_work) && out->n_edges() <= max_edges) return true;
  *out = Automaton();
  return without_empty(nfa, reach, max_edges, out, building);
}

}  // namespace gen::grammar
