// SPDX-License-Identifier: Apache-2.0
// Fusion in two passes: decide how each product is fused (Fate), then emit instructions in the
// order of nodes. See fusion.h.
#include "graph/fusion.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/to_size.h"
#include "graph/selection.h"

namespace gen::graph {
namespace {

enum class Fate {
  kAlone,
  kFolded,   // emitted by the node that reads it
  kStacked,  // emitted by the first of its stack
};

/// An operation that a product's epilogue can do: sum, + bias, activation or gate, + residual.
struct Pattern {
  bool FusionOptions::*on;
  Op reader;
  /// True: every operand is a product, all with the same input. False: one operand is a product
  /// (the later one is tried first), and the other is the residual.
  bool all;
  engine::WeightRole role;
};
constexpr Pattern kPatterns[] = {
    {&FusionOptions::gate_up, Op::kGated, true, engine::WeightRole::kGated},
    {&FusionOptions::activate, Op::kActivate, true, engine::WeightRole::kLinear},
    {&FusionOptions::residual, Op::kAdd, false, engine::WeightRole::kLinear},
};

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionOptions& options)
      : graph_(graph),
        options_(options),
        uses_(graph.nodes.size()),
        fates_(graph.nodes.size(), Fate::kAlone),
        stacks_(graph.nodes.size()),
        folded_(graph.nodes.size()),
        places_(graph.nodes.size()),
        packed_(graph.nodes.size()) {}

  Program run() {
    program_.vectors = graph_.vectors;
    place_joined();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const int32_t input : graph_.nodes[n].inputs) {
        if (input >= 0) uses_[to_size(input)].push_back(static_cast<int32_t>(n));
      }
    }
    decide();
    emit_angles();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) emit(static_cast<int32_t>(n));
    std::stable_partition(program_.instructions.begin(), program_.instructions.end(),
                          [](const Instruction& instruction) { return !instruction.selected; });
    return std::move(program_);
  }

 private:
  const Node& node(int32_t n) const { return graph_.nodes[to_size(n)]; }
  bool single_use(int32_t n) const { return uses_[to_size(n)].size() == 1; }
  bool is_free(int32_t n, Op op) const {
    return node(n).op == op && fates_[to_size(n)] == Fate::kAlone;
  }
  bool is_product(int32_t n) const {
    return node(n).op == Op::kLinear || node(n).op == Op::kExperts;
  }

  /// Whether a node may be fused into its only reader.
  bool is_foldable(int32_t n) const {
    return n >= 0 && is_product(n) && is_free(n, node(n).op) && single_use(n);
  }

  /// Whether a node is an activation of a product, and both may be fused into its only reader.
  bool is_foldable_end(int32_t n) const {
    return n >= 0 && node(n).op == Op::kActivate && folded_[to_size(n)].pattern != nullptr &&
           single_use(n);
  }

  /// The products that are fused into node `n`, in the order of their weights; none if the pattern
  /// does not fit.
  std::vector<int32_t> matched(const Pattern& pattern, int32_t n) const {
    const Op op = node(n).op;
    if (op != pattern.reader) return {};
    const auto inputs = std::span(node(n).inputs).first(engine::op_info(op).n_in);
    if (pattern.all) {
      const bool fits = std::all_of(inputs.begin(), inputs.end(), [&](int32_t input) {
        return is_foldable(input) && node(input).op == node(inputs[0]).op &&
               node(input).inputs == node(inputs[0]).inputs &&
               node(input).cols == node(inputs[0]).cols;
      });
      // A product is read once, so no two operands are the same one.
      return fits ? std::vector<int32_t>(inputs.begin(), inputs.end()) : std::vector<int32_t>();
    }
    const int32_t later = *std::max_element(inputs.begin(), inputs.end());
    const int32_t earlier = *std::min_element(inputs.begin(), inputs.end());
    for (const int32_t input : {later, earlier}) {
      if (node(input).slots > 1 || node(input).op == Op::kExperts) continue;  // have no residuals
      if (is_foldable(input) || is_foldable_end(input)) return {input};
    }
    return {};
  }

  void decide() {
    const auto count = static_cast<int32_t>(graph_.nodes.size());
    for (const Pattern& pattern : kPatterns) {
      for (int32_t n = 0; n < count && options_.*pattern.on; ++n) {
        const std::vector<int32_t> parts = matched(pattern, n);
        if (parts.empty()) continue;
        for (const int32_t part : parts) fates_[to_size(part)] = Fate::kFolded;
        // For an activation: its product, which is then emitted by the reader.
        const Folded& end = folded_[to_size(parts[0])];
        folded_[to_size(n)] = end.pattern != nullptr
                                  ? Folded{&pattern, parts, end.products, end.activation}
                                  : Folded{&pattern, parts, parts, node(n).activation};
      }
    }
    for (int32_t n = 0; n < count && options_.stack; ++n) {
      std::vector<int32_t> stack;
      for (const int32_t use : uses_[to_size(n)]) {
        if (is_free(use, Op::kLinear)) stack.push_back(use);
      }
      if (stack.size() < 2) continue;
      for (const int32_t member : stack) fates_[to_size(member)] = Fate::kStacked;
      stacks_[to_size(stack.front())] = std::move(stack);
    }
  }

  Operand new_value(int64_t cols, bool packed, const Node& of) {
    ProgramValue value;
    value.cols = cols;
    value.packed = packed;
    value.slots = of.slots;
    value.index = of.index;
    value.selected = of.selected;
    value.engine = of.engine;
    program_.values.push_back(value);
    return {static_cast<int32_t>(program_.values.size() - 1), 0, cols};
  }

  Instruction& append(Op op, const Node& from) {
    Instruction instruction;
    instruction.op = op;
    instruction.selected = from.selected;
    instruction.engine = from.engine;
    instruction.layer = from.layer;
    instruction.lookup = from.lookup;
    instruction.factor = from.factor;
    instruction.groups = from.groups;
    instruction.uncentred = from.uncentred;
    instruction.n_factors = from.n_factors;
    instruction.every = from.every;
    instruction.taps = from.taps;
    instruction.delta = from.delta;
    instruction.activation = from.activation;
    instruction.routing = from.routing;
    instruction.attention = from.attention;
    program_.instructions.push_back(instruction);
    return program_.instructions.back();
  }

  /// What is joined is written to the joined value.
  void place_joined() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& join = graph_.nodes[n];
      if (join.op != Op::kJoin) continue;
      places_[n] = new_value(join.cols, false, join);
      int64_t first = places_[n].first;
      for (const int32_t input : join.inputs) {
        if (input < 0) continue;
        places_[to_size(input)] = {places_[n].value, first, node(input).cols};
        first += node(input).cols;
      }
    }
  }

  /// The place of a node's value, a new one unless it is joined with another.
  Operand placed(int32_t n) {
    Operand& place = places_[to_size(n)];
    if (!place.present()) place = new_value(node(n).cols, false, node(n));
    return place;
  }

  /// The angles of a table, on every engine that uses it.
  void emit_angles() {
    for (const Node& turns : graph_.nodes) {
      const std::pair key(turns.engine, turns.attention.rope);
      if (turns.op != Op::kRopeAppend || key.second < 0 || angles_.count(key) != 0) continue;
      Node node;
      node.engine = turns.engine;
      const Operand angles = new_value(graph_.ropes[to_size(key.second)].n_dims, false, node);
      Instruction& instruction = append(Op::kRopeAngles, node);
      instruction.y = angles;
      instruction.attention.rope = key.second;
      angles_[key] = angles;
    }
  }

  /// The packed rows of a node, packed just before the first product that reads them unless the
  /// node wrote them itself.
  Operand packed(int32_t n) {
    Operand& rows = packed_[to_size(n)];
    if (!rows.present()) {
      rows = new_value(node(n).cols, true, node(n));
      Node from;
      from.selected = node(n).selected;
      from.engine = node(n).engine;
      Instruction& pack = append(Op::kPack, from);
      pack.x[0] = places_[to_size(n)];
      pack.packed = rows;
    }
    return rows;
  }

  /// Outputs of norms and attention: float rows for readers that need them, packed rows for
  /// products.
  void emit_outputs(int32_t n, Instruction* instruction) {
    const auto& uses = uses_[to_size(n)];
    const auto by_product = [&](int32_t use) { return is_product(use); };
    const bool any = std::any_of(uses.begin(), uses.end(), by_product);
    const bool all = std::all_of(uses.begin(), uses.end(), by_product);
    const bool early = options_.pack_early && any;
    if (!early || !all || options_.adapters) {
      instruction->y = placed(n);
    }
    if (early) {
      packed_[to_size(n)] = new_value(node(n).cols, true, node(n));
      instruction->packed = packed_[to_size(n)];
    }
  }

  /// A vector of all products one after another, with `absent` for those without one, `each` values
  /// for each; -1 if none has one.
  template <typename Each>
  int32_t joined(const std::vector<int32_t>& parts, int32_t Node::*vector, float absent,
                 const Each& each) {
    if (parts.size() == 1) return node(parts[0]).*vector;
    std::vector<float> all;
    bool any = false;
    for (const int32_t part : parts) {
      if (const int32_t of = node(part).*vector; of >= 0) {
        const std::vector<float>& values = graph_.vectors[to_size(of)];
        all.insert(all.end(), values.begin(), values.end());
        any = true;
      } else {
        all.resize(all.size() + static_cast<size_t>(each(node(part))), absent);
      }
    }
    if (!any) return -1;
    program_.vectors.push_back(std::move(all));
    return static_cast<int32_t>(program_.vectors.size() - 1);
  }

  Instruction& emit_product(engine::WeightRole role, const std::vector<int32_t>& parts,
                            Operand residual, Operand y) {
    const Node& first = node(parts[0]);
    const Operand x = packed(first.inputs[0]);
    Product product;
    product.role = role;
    int64_t offset = 0;
    for (const int32_t part : parts) {
      product.sources.push_back(graph_.weights[to_size(node(part).weight)]);
      product.sites.push_back({node(part).site, offset, node(part).cols});
      // The columns of gate and up are both all columns of the gated product.
      if (role != engine::WeightRole::kGated) offset += node(part).cols;
    }
    program_.products.push_back(std::move(product));
    const auto matrices = [&](const Node& of) { return graph_.weights[to_size(of.weight)].count; };
    const int32_t bias =
        joined(parts, &Node::vector, 0.0F, [&](const Node& of) { return of.cols * matrices(of); });
    const bool experts = first.op == Op::kExperts;
    const int32_t scales = experts ? joined(parts, &Node::vector2, 1.0F, matrices) : -1;
    Instruction& instruction = append(first.op, first);
    instruction.x[0] = x;
    instruction.x[1] = experts ? places_[to_size(first.inputs[1])] : residual;
    if (options_.adapters) instruction.x[2] = places_[to_size(first.inputs[0])];
    instruction.y = y;
    instruction.product = static_cast<int32_t>(program_.products.size() - 1);
    instruction.vector = bias;
    instruction.vector2 = scales;
    return instruction;
  }

  /// Emits a node together with its fused products.
  void emit_folded(int32_t n) {
    const Folded& folded = folded_[to_size(n)];
    Operand residual;
    for (const int32_t input : node(n).inputs) {
      if (input >= 0 && std::count(folded.parts.begin(), folded.parts.end(), input) == 0) {
        residual = places_[to_size(input)];
      }
    }
    emit_product(folded.pattern->role, folded.products, residual, places_[to_size(n)]).activation =
        folded.activation;
  }

  void emit_products(int32_t n) {
    const Fate fate = fates_[to_size(n)];
    if (fate == Fate::kAlone) {
      places_[to_size(n)] = new_value(node(n).cols, false, node(n));
      emit_product(engine::WeightRole::kLinear, {n}, {}, places_[to_size(n)]);
      return;
    }
    const std::vector<int32_t>& stack = stacks_[to_size(n)];
    if (fate != Fate::kStacked || stack.empty()) return;
    int64_t cols = 0;
    for (const int32_t member : stack) cols += node(member).cols;
    const Operand whole = new_value(cols, false, node(n));
    int64_t first = 0;
    for (const int32_t member : stack) {
      places_[to_size(member)] = {whole.value, first, node(member).cols};
      first += node(member).cols;
    }
    emit_product(engine::WeightRole::kLinear, stack, {}, whole);
  }

  void emit(int32_t n) {
    const Node& from = node(n);
    const engine::OpInfo& info = engine::op_info(from.op);
    if (is_product(n)) {
      emit_products(n);
      return;
    }
    if (from.op == Op::kSlice) {
      const Operand& whole = places_[to_size(from.inputs[0])];
      places_[to_size(n)] = {whole.value, whole.first + from.first, from.cols};
      return;
    }
    if (fates_[to_size(n)] == Fate::kFolded || from.op == Op::kJoin) return;
    const bool makes_value = engine::makes_value(info.effect);
    if (makes_value && !info.packs) static_cast<void>(placed(n));
    if (folded_[to_size(n)].pattern != nullptr) {
      emit_folded(n);
      return;
    }
    if (from.op == Op::kEmbed) {
      program_.products.push_back({engine::WeightRole::kEmbedding,
                                   {graph_.weights[to_size(from.weight)]},
                                   {{from.site, 0, from.cols}}});
    }
    if (from.op == Op::kLogits && graph_.scores)
      append(Op::kBest, from).x[0] = places_[to_size(from.inputs[0])];
    Instruction& instruction = append(from.op, from);
    for (size_t i = 0; i < from.inputs.size(); ++i) {
      if (from.inputs[i] >= 0) instruction.x[i] = places_[to_size(from.inputs[i])];
    }
    instruction.vector = from.vector;
    instruction.vector2 = from.vector2;
    if (from.op == Op::kEmbed) {
      instruction.product = static_cast<int32_t>(program_.products.size() - 1);
    }
    if (info.effect == engine::Effect::kCache) {
      if (from.attention.rope >= 0)
        instruction.angles = angles_[{from.engine, from.attention.rope}];
      places_[to_size(n)] = instruction.x[0];  // changed in place
    } else if (info.packs) {
      emit_outputs(n, &instruction);
    } else if (makes_value) {
      instruction.y = places_[to_size(n)];
    }
  }

  struct Folded {
    const Pattern* pattern = nullptr;
    std::vector<int32_t> parts;     // its operands that are not emitted
    std::vector<int32_t> products;  // the products that it emits
    engine::Activation activation;
  };

  const Graph& graph_;
  const FusionOptions& options_;
  Program program_;
  std::vector<std::vector<int32_t>> uses_;    // nodes that read a node's value
  std::vector<Fate> fates_;                   // of linear nodes and of activations
  std::vector<std::vector<int32_t>> stacks_;  // at the first member: all members
  std::vector<Folded> folded_;                // by node
  std::vector<Operand> places_;               // a node's float rows
  std::vector<Operand> packed_;               // its packed rows
  /// By engine and rotary table.
  std::map<std::pair<int32_t, int32_t>, Operand> angles_;
};

/// Values [first, first + cols) of a joined vector.
int32_t cut(Program& program, int32_t vector, int64_t first, int64_t cols) {
  if (vector < 0) return -1;
  const std::vector<float>& joined = program.vectors[to_size(vector)];
  const auto begin = joined.begin() + first;
  std::vector<float> part(begin, begin + cols);
  program.vectors.push_back(std::move(part));
  return static_cast<int32_t>(program.vectors.size() - 1);
}

/// Emits source `i` as a separate product, into `y`.
void append_part(Program& program, const Instruction& instruction, size_t i, const Operand& y,
                 int32_t bias) {
  const Product product = program.products[to_size(instruction.product)];
  program.products.push_back({engine::WeightRole::kLinear,
                              {product.sources[i]},
                              {{product.sites[i].site, 0, product.sources[i].rows}}});
  Instruction part = instruction;
  part.product = static_cast<int32_t>(program.products.size() - 1);
  part.y = y;
  part.vector = bias;
  program.instructions.push_back(part);
}

/// Gate and up of experts as separate products, followed by the gate.
void split_experts(Program& program, const Instruction& instruction) {
  Operand halves[2];
  Instruction plain = instruction;
  plain.activation = {};
  const Product product = program.products[to_size(instruction.product)];
  const int64_t outputs = product.sources[0].count * product.sources[0].rows;
  for (size_t i = 0; i < 2; ++i) {
    ProgramValue value;
    value.cols = instruction.y.cols;
    value.slots = instruction.routing.n_used;
    value.selected = instruction.selected;
    value.engine = instruction.engine;
    program.values.push_back(value);
    halves[i] = {static_cast<int32_t>(program.values.size() - 1), 0, value.cols};
    const auto first = static_cast<int64_t>(i) * outputs;
    plain.vector2 =
        cut(program, instruction.vector2, static_cast<int64_t>(i) * product.sources[0].count,
            product.sources[0].count);
    append_part(program, plain, i, halves[i], cut(program, instruction.vector, first, outputs));
  }
  Instruction gated;
  gated.op = Op::kGated;
  gated.activation = instruction.activation;
  gated.selected = instruction.selected;
  gated.engine = instruction.engine;
  gated.x[0] = halves[0];
  gated.x[1] = halves[1];
  gated.y = instruction.y;
  program.instructions.push_back(gated);
}

}  // namespace

Program fuse(const Graph& graph, const FusionOptions& options, const EngineOfBlock& engines) {
  if (!options.select_early && engines.empty()) return Fuser(graph, options).run();
  Graph whole = options.select_early ? select_early(graph) : graph;
  if (!engines.empty()) whole = split_engines(whole, engines);
  return Fuser(whole, options).run();
}

void split_product(Program& program, const Instruction& instruction) {
  const Product product = program.products[to_size(instruction.product)];
  if (instruction.op == Op::kExperts) {
    split_experts(program, instruction);
    return;
  }
  if (product.role == engine::WeightRole::kGated) {
    const int64_t cols = instruction.y.cols;
    ProgramValue both;
    both.cols = 2 * cols;
    both.selected = instruction.selected;
    both.engine = instruction.engine;
    program.values.push_back(both);
    const auto value = static_cast<int32_t>(program.values.size() - 1);

    Product stacked = product;
    stacked.role = engine::WeightRole::kLinear;
    stacked.sites[1].first = cols;
    program.products.push_back(std::move(stacked));
    Instruction linear = instruction;
    linear.y = {value, 0, 2 * cols};
    linear.product = static_cast<int32_t>(program.products.size() - 1);
    linear.activation = {};
    program.instructions.push_back(linear);

    Instruction gated;
    gated.op = Op::kGated;
    gated.activation = instruction.activation;
    gated.selected = instruction.selected;
    gated.engine = instruction.engine;
    gated.x[0] = {value, 0, cols};
    gated.x[1] = {value, cols, cols};
    gated.y = instruction.y;
    program.instructions.push_back(gated);
    return;
  }
  int64_t first = 0;
  for (size_t i = 0; i < product.sources.size(); ++i) {
    const int64_t cols = product.sources[i].rows;
    append_part(program, instruction, i, {instruction.y.value, instruction.y.first + first, cols},
                cut(program, instruction.vector, first, cols));
    first += cols;
  }
}

}  // namespace gen::graph
