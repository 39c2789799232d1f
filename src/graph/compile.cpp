// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan: fuse, bring weights into the engine's layout (splitting products that it
// has no kernel for), find out who may write in place, place the values. See execution_plan.h.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "graph/cache_layers.h"
#include "graph/execution_plan.h"
#include "graph/memory_plan.h"

namespace gen::graph {
namespace {

constexpr size_t kAlign = 64;
constexpr int64_t kLeastSelectedRows = 16;  // of a chunk, whatever the arena

size_t at(int32_t index) { return static_cast<size_t>(index); }
size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Calls visit(operand, writes) for everything an instruction touches.
template <typename Visit>
void for_operands(const Instruction& instruction, Visit visit) {
  for (const Operand* operand : instruction.reads()) {
    if (operand->present()) visit(*operand, false);
  }
  for (const Operand* operand : instruction.writes()) {
    if (operand->present()) visit(*operand, true);
  }
}

}  // namespace

class Compiler {
 public:
  Compiler(const Graph& graph, std::shared_ptr<engine::Engine> engine,
           const CompileOptions& options)
      : graph_(graph), options_(options), plan_(new ExecutionPlan()) {
    plan_->engine_ = std::move(engine);
  }

  Result<std::shared_ptr<const ExecutionPlan>> run() {
    GEN_TRY(check_engine());
    program_ = fuse(graph_, options_.fusion);
    GEN_TRY(prepare_all());
    GEN_TRY(upload_constants());
    place_values();
    copy_facts();
    if (!report(1.0)) return error(Code::kCancelled, "cancelled while loading");
    return std::shared_ptr<const ExecutionPlan>(std::move(plan_));
  }

 private:
  bool report(double fraction) { return !options_.progress || options_.progress(fraction); }

  Status check_engine() const {
    for (const Node& node : graph_.nodes) {
      GEN_TRY(check_attention(node));
      const engine::OpInfo& info = engine::op_info(node.op);
      if (info.effect == engine::Effect::kHost || plan_->engine_->can(node.op)) continue;
      return error(Code::kUnsupported, "engine %s has no %s", plan_->engine_->name(), info.name);
    }
    return {};
  }

  /// Ways to attend that have no kernels.
  Status check_attention(const Node& node) const {
    const AttentionSpec& spec = node.attention;
    const char* what = spec.v_in_k                   ? "values in keys"
                       : !spec.causal                ? "attention to later rows"
                       : spec.use == CacheUse::kStep ? "attention without a cache"
                                                     : nullptr;
    if (what == nullptr) return {};
    return error(Code::kUnsupported, "block %d: engine %s has no %s", node.block,
                 plan_->engine_->name(), what);
  }

  Status prepare_all() {
    for (const Product& product : program_.products) {
      for (const engine::WeightSource& source : product.sources) {
        total_ += source.data.size();
        ++pending_[source.data.data()];
      }
    }
    size_t bytes = 0;
    for (const Product& product : program_.products) {
      if (!checked_add(bytes, plan_->engine_->weight_bytes(product.role, product.sources),
                       &bytes)) {
        return error(Code::kOutOfMemory, "the weights overflow a size");
      }
    }
    GEN_ASSIGN(weights_, plan_->engine_->new_weight_memory(bytes));
    const std::vector<Instruction> fused = std::move(program_.instructions);
    program_.instructions.clear();
    for (const Instruction& instruction : fused) GEN_TRY(prepare(instruction));
    plan_->instructions_ = std::move(program_.instructions);
    const auto selected = [](const Instruction& instruction) { return instruction.selected; };
    plan_->first_selected_ = static_cast<size_t>(
        std::find_if(plan_->instructions_.begin(), plan_->instructions_.end(), selected) -
        plan_->instructions_.begin());
    plan_->end_selected_taps_ = plan_->first_selected_;
    for (size_t i = plan_->first_selected_; i < plan_->instructions_.size(); ++i) {
      if (plan_->instructions_[i].op == Op::kTap) plan_->end_selected_taps_ = i + 1;
    }
    find_skippable();
    return {};
  }

  /// What no other instruction over all rows reads need not run when no row is selected.
  void find_skippable() {
    std::vector<bool> read(program_.values.size(), false);
    for (size_t i = plan_->first_selected_; i-- > 0;) {
      Instruction& instruction = plan_->instructions_[i];
      bool wanted = engine::op_info(instruction.op).effect != engine::Effect::kNone;
      // Turned in place, and nothing stored.
      if (instruction.attention.use == CacheUse::kShared && instruction.op == Op::kRopeAppend) {
        wanted = read[at(instruction.x.value)];
      }
      for_operands(instruction, [&](const Operand& operand, bool writes) {
        if (writes && read[at(operand.value)]) wanted = true;
      });
      instruction.skippable = !wanted;
      if (!wanted) continue;
      for_operands(instruction, [&](const Operand& operand, bool writes) {
        if (!writes) read[at(operand.value)] = true;
      });
    }
  }

  /// Appends an instruction, with its weight if it has one, to what is compiled.
  Status prepare(const Instruction& instruction) {
    if (instruction.product < 0) {
      program_.instructions.push_back(instruction);
      return {};
    }
    if (options_.cancel != nullptr && options_.cancel->raised()) {
      return error(Code::kCancelled, "cancelled while loading");
    }
    const Product& product = program_.products[at(instruction.product)];
    auto weight = plan_->engine_->prepare(product.role, product.sources, weights_);
    if (!weight.ok()) {
      if (weight.status().code() != Code::kUnsupported || product.sources.size() < 2) {
        return weight.status();
      }
      // The parts may well have kernels of their own.
      const size_t before = program_.instructions.size();
      split_product(program_, instruction);
      const std::vector<Instruction> parts(
          program_.instructions.begin() + static_cast<std::ptrdiff_t>(before),
          program_.instructions.end());
      program_.instructions.resize(before);
      for (const Instruction& part : parts) GEN_TRY(prepare(part));
      return {};
    }
    return keep(instruction, std::move(weight).value());
  }

  Status keep(const Instruction& instruction, std::unique_ptr<engine::Weight> weight) {
    const Product& product = program_.products[at(instruction.product)];
    ExecutionPlan::Prepared prepared;
    for (const engine::WeightSource& source : product.sources) {
      if (!prepared.name.empty()) prepared.name += '+';
      prepared.name += source.name;
    }
    prepared.sites = product.sites;
    if (instruction.op == Op::kLinear) {
      program_.values[at(instruction.x.value)].forms |= weight->activation_forms();
      plan_->stream_bytes_ += weight->stream_bytes();
    }
    plan_->resident_bytes_ += weight->resident_bytes();
    const bool copied = weight->resident_bytes() > 0;
    if (!copied) plan_->borrows_sources_ = true;
    prepared.weight = std::move(weight);
    plan_->products_.push_back(std::move(prepared));
    program_.instructions.push_back(instruction);
    program_.instructions.back().product = static_cast<int32_t>(plan_->products_.size() - 1);

    for (const engine::WeightSource& source : product.sources) {
      done_ += source.data.size();
      size_t& pending = pending_[source.data.data()];
      if (!copied) pending += 1;  // the weight itself goes on reading them
      if (--pending == 0 && options_.release) options_.release(source.data);
    }
    const double fraction =
        total_ == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(total_);
    // 1 is reported once, at the very end.
    if (done_ < total_ && !report(fraction)) {
      return error(Code::kCancelled, "cancelled while loading");
    }
    return {};
  }

  Status upload_constants() {
    size_t bytes = 0;
    const auto each = [&](const auto& visit) -> Status {
      for (const std::vector<float>& vector : program_.vectors) {
        GEN_TRY(visit(vector, &plan_->vectors_));
      }
      for (const RopeSpec& rope : graph_.ropes) GEN_TRY(visit(rope.inv_freq, &plan_->inv_freq_));
      return {};
    };
    Status status = each([&](const std::vector<float>& values, auto*) -> Status {
      bytes += aligned(values.size() * sizeof(float));
      return {};
    });
    GEN_ASSIGN(plan_->constants_, plan_->engine_->memory().allocate(bytes));
    GEN_ASSIGN(const std::unique_ptr<engine::Stream> stream, plan_->engine_->new_stream());
    engine::EnginePtr<std::byte> next = plan_->constants_.data();
    status = each([&](const std::vector<float>& values, auto* places) -> Status {
      places->push_back(next.as<const float>());
      const size_t size = values.size() * sizeof(float);
      const engine::EnginePtr<std::byte> to = next;
      next = next + static_cast<std::ptrdiff_t>(aligned(size));
      return plan_->engine_->upload(*stream, to, values.data(), size);
    });
    GEN_TRY(std::move(status));
    plan_->resident_bytes_ += bytes;
    return plan_->engine_->finish(*stream);
  }

  void place_values() {
    std::vector<ProgramValue>& values = program_.values;
    for (ProgramValue& value : values) {
      value.row_bytes = value.packed ? plan_->engine_->activation_bytes(value.forms, value.cols)
                                     : aligned(static_cast<size_t>(value.cols) * sizeof(float));
    }
    find_lifetimes();
    share_in_place();
    for (const bool selected : {false, true}) {
      std::vector<Lifetime> lives;
      std::vector<size_t> owners;
      for (size_t i = 0; i < values.size(); ++i) {
        const bool used = lives_[i].first <= lives_[i].last;
        if (values[i].selected != selected || root(i) != i || !used) continue;
        lives.push_back(lives_[i]);
        lives.back().row_bytes = values[i].row_bytes;
        owners.push_back(i);
      }
      const Placement placement = place(lives);
      for (size_t i = 0; i < owners.size(); ++i) values[owners[i]].offset = placement.offsets[i];
      (selected ? plan_->selected_row_bytes_ : plan_->row_bytes_) = placement.row_bytes;
    }
    for (size_t i = 0; i < values.size(); ++i) values[i].offset = values[root(i)].offset;
    plan_->values_ = std::move(values);
  }

  void find_lifetimes() {
    const auto never = static_cast<int32_t>(plan_->instructions_.size());
    lives_.assign(program_.values.size(), Lifetime{never, -1, 0});
    for (int32_t i = 0; i < never; ++i) {
      for_operands(plan_->instructions_[at(i)], [&](const Operand& operand, bool) {
        Lifetime& life = lives_[at(operand.value)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      });
    }
  }

  /// What is made may lie where an operand was that nobody reads later, where the operation allows
  /// that.
  void share_in_place() {
    owner_.resize(program_.values.size());
    for (size_t i = 0; i < owner_.size(); ++i) owner_[i] = i;
    for (int32_t i = 0; i < static_cast<int32_t>(plan_->instructions_.size()); ++i) {
      const Instruction& instruction = plan_->instructions_[at(i)];
      const uint8_t in_place = engine::op_info(instruction.op).in_place;
      const auto reads = instruction.reads();
      const Operand& y = instruction.y;
      for (size_t operand = 0; operand < reads.size(); ++operand) {
        const Operand* const term = reads[operand];
        if ((in_place >> operand & 1) == 0 || !term->present() ||
            root(at(y.value)) == root(at(term->value)))
          continue;
        const size_t from = root(at(term->value));
        const ProgramValue& source = program_.values[at(term->value)];
        const ProgramValue& target = program_.values[at(y.value)];
        const bool whole = term->cols == source.cols && y.cols == target.cols;
        if (!whole || source.selected != target.selected || source.cols != target.cols) continue;
        // Both operands may be one value; it is then read and written column by column.
        if (lives_[from].last != i || lives_[at(y.value)].first != i) continue;
        owner_[at(y.value)] = from;
        lives_[from].last = lives_[at(y.value)].last;
        break;
      }
    }
  }

  size_t root(size_t value) const {
    while (owner_[value] != value) value = owner_[value];
    return value;
  }

  void copy_facts() {
    plan_->ropes_ = graph_.ropes;
    for (const RopeSpec& rope : plan_->ropes_) {
      plan_->tables_.push_back({rope.kind, rope.n_dims, rope.inv_freq.data(), rope.magnitude});
    }
    plan_->layers_ = cache_layers(graph_, plan_->tables_);
    plan_->vocab_ = graph_.vocab;
    plan_->hidden_ = graph_.hidden;
    plan_->logits_ = graph_.logits;
    plan_->n_taps_ = graph_.n_taps;
    plan_->max_rows_ = options_.max_rows;
    plan_->max_seq_len_ = options_.max_seq_len;
    const auto fitting = static_cast<int64_t>(options_.selected_arena_bytes /
                                              std::max(plan_->selected_row_bytes_, kAlign));
    plan_->selected_chunk_ = std::max(kLeastSelectedRows, fitting);
  }

  const Graph& graph_;
  const CompileOptions& options_;
  std::unique_ptr<ExecutionPlan> plan_;
  Program program_;
  std::shared_ptr<engine::WeightMemory> weights_;
  size_t total_ = 0;  // bytes of all sources
  size_t done_ = 0;
  std::unordered_map<const std::byte*, size_t> pending_;  // how often a source is still to be read
  std::vector<Lifetime> lives_;                           // by value
  std::vector<size_t> owner_;                             // value whose bytes a value takes over
};

Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph,
                                                     std::shared_ptr<engine::Engine> engine,
                                                     const CompileOptions& options) {
  if (engine == nullptr) return error(Code::kInvalidArgument, "no engine to compile for");
  if (options.max_rows < 1 || options.max_seq_len < 1) {
    return error(Code::kInvalidArgument, "a plan for %d rows and %d positions", options.max_rows,
                 options.max_seq_len);
  }
  return Compiler(graph, std::move(engine), options).run();
}

}  // namespace gen::graph
