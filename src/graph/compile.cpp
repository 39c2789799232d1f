// SPDX-License-Identifier: Apache-2.0
// Compiles a graph to a plan: fuses nodes, converts weights to the engine's layout (splitting
// products without a kernel), finds operations that can work in place, places the values. See
// execution_plan.h.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/allocator.h"
#include "base/checked.h"
#include "base/to_size.h"
#include "graph/cache_layers.h"
#include "graph/execution_plan.h"
#include "graph/memory_plan.h"

namespace gen::graph {
namespace {

constexpr int64_t kLeastSelectedRows = 16;  // per chunk, even if the arena is smaller

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
  Compiler(const Graph& graph, Engines engines, const EngineOfBlock& engine_of_block,
           const CompileOptions& options)
      : graph_(graph),
        engine_of_block_(engine_of_block),
        options_(options),
        plan_(new ExecutionPlan()),
        weights_(engines.size()) {
    plan_->engines_ = std::move(engines);
    plan_->engine_of_block_.assign(engine_of_block.blocks.begin(), engine_of_block.blocks.end());
    plan_->engine_of_experts_.assign(engine_of_block.experts.begin(),
                                     engine_of_block.experts.end());
  }

  Result<std::shared_ptr<const ExecutionPlan>> run() {
    GEN_TRY(check_engine());
    FusionOptions fusion = options_.fusion;
    fusion.adapters = options_.adapter_rank > 0;
    program_ = fuse(graph_, fusion, engine_of_block_);
    GEN_TRY(prepare_all());
    GEN_TRY(write_constants());
    GEN_TRY(write_sites());
    place_values();
    copy_facts();
    GEN_TRY(find_state_engine());
    if (!report(1.0)) return error(Code::kCancelled, "cancelled while loading");
    return std::shared_ptr<const ExecutionPlan>(std::move(plan_));
  }

 private:
  bool report(double fraction) { return !options_.progress || options_.progress(fraction); }

  Status check_engine() const {
    for (const auto& engine : plan_->engines_) {
      if (options_.observed && !engine->memory().in_host()) {
        return error(Code::kUnsupported,
                     "inputs of products can be observed on the CPU only, not on engine %s",
                     engine->name());
      }
      if (options_.adapter_rank == 0 || engine->can(Op::kAdapterIn)) continue;
      return error(Code::kUnsupported, "engine %s has no adapters", engine->name());
    }
    for (const Node& node : graph_.nodes) {
      const engine::Engine& engine = engine_of(engine_for(engine_of_block_, node));
      GEN_TRY(check_attention(node, engine));
      const engine::OpInfo& info = engine::op_info(node.op);
      if (node.op == Op::kEmbed) GEN_TRY(check_positions(node));
      if (!engine::is_engine_op(node.op) || engine.can(node.op)) continue;
      return error(Code::kUnsupported, "engine %s has no %s", engine.name(), info.name);
    }
    return {};
  }
  Status check_positions(const Node& embed) const {
    const engine::WeightSource& table = graph_.weights[to_size(embed.weight)];
    if (embed.lookup != Lookup::kPositions || table.rows >= options_.max_seq_len) return {};
    return error(Code::kFormat, "%s: %lld rows for a context of %d", table.name,
                 static_cast<long long>(table.rows), options_.max_seq_len);
  }
  [[nodiscard]] engine::Engine& engine_of(int32_t index) const {
    return *plan_->engines_[to_size(index)];
  }

  /// Refuses forms of attention without kernels.
  Status check_attention(const Node& node, const engine::Engine& engine) const {
    const AttentionSpec& spec = node.attention;
    const char* what = spec.v_in_k                   ? "values in keys"
                       : !spec.causal                ? "attention to later rows"
                       : spec.use == CacheUse::kStep ? "attention without a cache"
                                                     : nullptr;
    if (what != nullptr) {
      return error(Code::kUnsupported, "block %d: engine %s has no %s", node.block, engine.name(),
                   what);
    }
    if (spec.use != CacheUse::kShared ||
        engine_for(engine_of_block_, node.block) == engine_for(engine_of_block_, spec.shared)) {
      return {};
    }
    return error(Code::kUnsupported,
                 "block %d shares the cache layer of block %d, on another engine", node.block,
                 spec.shared);
  }

  Status prepare_all() {
    for (const Product& product : program_.products) {
      for (const engine::WeightSource& source : product.sources) {
        total_ += source.data.size();
        ++pending_[source.data.data()];
      }
    }
    std::vector<size_t> bytes(plan_->engines_.size(), 0);
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.product < 0 || (options_.base != nullptr && options_.of_base == nullptr))
        continue;
      const Product& product = program_.products[to_size(instruction.product)];
      if (base_product(instruction.engine, product, 0) != nullptr) continue;
      size_t& sum = bytes[to_size(instruction.engine)];
      if (!checked_add(sum,
                       engine_of(instruction.engine).weight_bytes(product.role, product.sources),
                       &sum)) {
        return error(Code::kOutOfMemory, "the weights overflow a size");
      }
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      GEN_ASSIGN(weights_[i], plan_->engines_[i]->new_weight_memory(bytes[i]));
    }
    const std::vector<Instruction> fused = std::move(program_.instructions);
    program_.instructions.clear();
    for (const Instruction& instruction : fused) GEN_TRY(prepare(instruction));
    drop_copies();
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
    find_lists();
    return {};
  }

  void find_lists() {
    for (const Instruction& instruction : plan_->instructions_) {
      if (instruction.op == Op::kMeanRows) plan_->lists_.firsts = true;
      if (instruction.op != Op::kEmbed) continue;
      if (plan_->own_embedding_ < 0) plan_->own_embedding_ = instruction.product;
      if (instruction.lookup == Lookup::kConstant) plan_->lists_.zeros = true;
    }
  }

  /// Rows that an engine packs unchanged are not copied: products read them in place. A value that
  /// only products read is written directly to its packed rows.
  void drop_copies() {
    std::vector<int32_t> same(program_.values.size(), -1);
    std::vector<Instruction> left;
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.op == Op::kPack && !is_copy(instruction)) pack_in_place(instruction);
    }
    for (Instruction instruction : program_.instructions) {
      if (instruction.op == Op::kPack && is_copy(instruction)) {
        const ProgramValue& packed = program_.values[to_size(instruction.packed.value)];
        ProgramValue& rows = program_.values[to_size(instruction.x[0].value)];
        same[to_size(instruction.packed.value)] = instruction.x[0].value;
        rows.forms = packed.forms;
        if (only_products_read(instruction)) rows.bf16_rows = packed.bf16_rows;
        continue;
      }
      // Only products read packed rows.
      if ((instruction.op == Op::kLinear || instruction.op == Op::kExperts) &&
          same[to_size(instruction.x[0].value)] >= 0) {
        instruction.x[0].value = same[to_size(instruction.x[0].value)];
      }
      left.push_back(instruction);
    }
    program_.instructions = std::move(left);
  }
  /// For a pack: whether its input is the result of a product and has no other reader.
  [[nodiscard]] bool only_products_read(const Instruction& pack) const {
    int32_t readers = 0;
    bool product = false;
    for (const Instruction& other : program_.instructions) {
      for (const Operand* const read : other.reads()) {
        if (read->value == pack.x[0].value) ++readers;
      }
      if (other.y.value == pack.x[0].value) {
        product = other.op == Op::kExperts || (other.op == Op::kLinear && !other.x[1].present());
      }
    }
    return product && readers == 1;
  }
  void pack_in_place(const Instruction& pack) {
    const Operand from = pack.x[0];
    const ProgramValue& rows = program_.values[to_size(from.value)];
    const ProgramValue& packed = program_.values[to_size(pack.packed.value)];
    if (!engine_of(packed.engine).packs_in_place() || from.cols != rows.cols ||
        rows.engine != packed.engine || rows.selected != packed.selected ||
        !only_products_read(pack)) {
      return;
    }
    for (Instruction& other : program_.instructions) {
      if (other.y.value == from.value) other.y.value = pack.packed.value;
      if (other.x[0].value == from.value) other.x[0].value = pack.packed.value;
    }
  }
  /// For a pack: whether it would copy contiguous rows unchanged, and nothing changes them later.
  [[nodiscard]] bool is_copy(const Instruction& pack) const {
    const ProgramValue& from = program_.values[to_size(pack.x[0].value)];
    const ProgramValue& to = program_.values[to_size(pack.packed.value)];
    const engine::Engine& engine = *plan_->engines_[to_size(to.engine)];
    return pack.x[0].cols == from.cols && from.engine == to.engine &&
           from.selected == to.selected && engine.packs_as_rows(to.forms) &&
           std::none_of(program_.instructions.begin(), program_.instructions.end(),
                        [&](const Instruction& other) {
                          return (other.op == Op::kRopeAppend || other.op == Op::kBest) &&
                                 other.x[0].value == pack.x[0].value;
                        });
  }

  /// Marks instructions whose results only selected instructions read: they are skipped if no row
  /// is selected.
  void find_skippable() {
    std::vector<bool> read(program_.values.size(), false);
    for (size_t i = plan_->first_selected_; i-- > 0;) {
      Instruction& instruction = plan_->instructions_[i];
      bool wanted = engine::op_info(instruction.op).effect != engine::Effect::kNone;
      // q is rotated in place, and nothing is stored.
      const bool reads = instruction.attention.use == CacheUse::kShared ||
                         instruction.attention.use == CacheUse::kGiven;
      if (reads && instruction.op == Op::kRopeAppend) {
        wanted = read[to_size(instruction.x[0].value)];
      }
      for_operands(instruction, [&](const Operand& operand, bool writes) {
        if (writes && read[to_size(operand.value)]) wanted = true;
      });
      instruction.skippable = !wanted;
      if (!wanted) continue;
      for_operands(instruction, [&](const Operand& operand, bool writes) {
        if (!writes) read[to_size(operand.value)] = true;
      });
    }
  }

  /// Appends a compiled instruction, with its weight if it has one.
  Status prepare(const Instruction& instruction) {
    if (instruction.product < 0) {
      program_.instructions.push_back(instruction);
      return {};
    }
    if (options_.cancel != nullptr && options_.cancel->raised()) {
      return error(Code::kCancelled, "cancelled while loading");
    }
    const Product& product = program_.products[to_size(instruction.product)];
    auto weight = prepare_weight(instruction.engine, product);
    if (!weight.ok()) {
      if (weight.status().code() != Code::kUnsupported || product.sources.size() < 2) {
        return weight.status();
      }
      // The separate products may have kernels.
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

  [[nodiscard]] size_t next_product() const noexcept { return plan_->products_.size(); }

  static std::vector<uintptr_t> places(const Product& product) {
    std::vector<uintptr_t> all;
    for (const engine::WeightSource& source : product.sources) {
      all.push_back(reinterpret_cast<uintptr_t>(source.data.data()));
    }
    return all;
  }

  /// Whether sources are the base's, where the graph may have others.
  [[nodiscard]] bool is_of_base(const Product& product) const {
    const std::vector<uintptr_t> sources = places(product);
    return std::all_of(sources.begin(), sources.end(), [this](uintptr_t source) {
      return std::count(options_.of_base->begin(), options_.of_base->end(), source) > 0;
    });
  }

  /// The base's product of the same sources on the same engine, from its product `from` on; null if
  /// there is none, or no base.
  const ExecutionPlan::Prepared* base_product(int32_t engine, const Product& product,
                                              size_t from) const {
    if (options_.base == nullptr) return nullptr;
    const ExecutionPlan& base = *options_.base;
    const std::vector<uintptr_t> sources = places(product);
    if (options_.of_base != nullptr && !is_of_base(product)) return nullptr;
    for (const Instruction& instruction : base.instructions_) {
      if (instruction.product < 0 || to_size(instruction.product) < from) continue;
      const ExecutionPlan::Prepared& of = base.products_[to_size(instruction.product)];
      if (of.weight->role() == product.role && of.sources == sources &&
          base.engines_[to_size(instruction.engine)] == plan_->engines_[to_size(engine)]) {
        return &of;
      }
    }
    return nullptr;
  }

  /// A weight, and the product of the base that it is shared with.
  struct Made {
    std::shared_ptr<const engine::Weight> weight;
    const ExecutionPlan::Prepared* base = nullptr;
  };

  /// A base's products are in the same order and split in the same way; those that this graph lacks
  /// are skipped. With weights of its own there is no order.
  Result<Made> prepare_weight(int32_t engine, const Product& product) {
    const size_t from = options_.of_base != nullptr ? 0 : next_base_;
    if (const auto* const base = base_product(engine, product, from); base != nullptr) {
      next_base_ = static_cast<size_t>(base - options_.base->products_.data()) + 1;
      return Made{base->weight, base};
    }
    if (options_.base != nullptr && options_.of_base == nullptr) {
      return error(Code::kUnsupported, "the base has split this product");
    }
    if (options_.base != nullptr && is_of_base(product)) {
      return error(Code::kUnsupported, "engine %s has no %s to share", engine_of(engine).name(),
                   product.role == engine::WeightRole::kEmbedding ? "embedding" : "output layer");
    }
    GEN_ASSIGN(auto made,
               engine_of(engine).prepare(product.role, product.sources, weights_[to_size(engine)]));
    return Made{std::move(made), nullptr};
  }

  /// Inserts A x of the rows' adapters before a product.
  void add_adapter_in(Instruction* instruction, size_t sites) {
    const Operand rows = std::exchange(instruction->x[2], {});
    if (options_.adapter_rank == 0 || sites == 0) return;
    ProgramValue value;
    value.cols = int64_t{options_.adapter_rank} * static_cast<int64_t>(sites);
    if (instruction->op == Op::kExperts) value.slots = instruction->routing.n_used;
    value.selected = instruction->selected;
    value.engine = instruction->engine;
    program_.values.push_back(value);
    Instruction in;
    in.op = Op::kAdapterIn;
    in.selected = instruction->selected;
    in.engine = instruction->engine;
    in.product = static_cast<int32_t>(next_product());
    in.x[0] = rows;
    if (instruction->op == Op::kExperts) in.x[1] = instruction->x[1];
    in.y = {static_cast<int32_t>(program_.values.size() - 1), 0, value.cols};
    instruction->x[2] = in.y;
    program_.instructions.push_back(in);
  }

  Status keep(Instruction instruction, Made made) {
    const Product& product = program_.products[to_size(instruction.product)];
    const bool shared = made.base != nullptr;
    const std::shared_ptr<const engine::Weight>& weight = made.weight;
    ExecutionPlan::Prepared prepared;
    if (shared) {
      prepared.name = made.base->name;
      prepared.tensors = made.base->tensors;
    }
    for (const engine::WeightSource& source : product.sources) {
      if (shared) break;
      if (!prepared.name.empty()) prepared.name += '+';
      prepared.name += source.name;
      if (source.first_row == 0) prepared.tensors.emplace_back(source.name);
    }
    // A product may be stacked with others that adapters leave alone.
    std::copy_if(product.sites.begin(), product.sites.end(), std::back_inserter(prepared.sites),
                 [](const SiteSlice& of) { return of.site >= 0; });
    prepared.sources = places(product);
    if (instruction.op == Op::kLinear || instruction.op == Op::kExperts) {
      add_adapter_in(&instruction, prepared.sites.size());
      ProgramValue& x = program_.values[to_size(instruction.x[0].value)];
      x.forms |= weight->activation_forms();
      if (options_.observed) x.forms |= engine::kActF32;
      // Experts do not take bfloat16 rows.
      const bool floats = instruction.op == Op::kExperts || options_.observed;
      x.bf16_rows = std::max(x.bf16_rows, floats ? engine::kAnyRows : weight->bf16_rows());
      // A row reads only the matrices of its own experts.
      const int64_t read = weight->count() > 1 ? instruction.routing.n_used : 1;
      plan_->stream_bytes_ +=
          weight->stream_bytes() / static_cast<size_t>(weight->count()) * static_cast<size_t>(read);
    }
    if (instruction.op == Op::kLinear) {
      plan_->one_result_rows_ = std::max(plan_->one_result_rows_, weight->one_result_rows());
    }
    const bool copied = weight->resident_bytes() > 0;
    if (!shared) plan_->resident_bytes_ += weight->resident_bytes();
    if (!copied) plan_->borrows_sources_ = true;
    prepared.weight = std::move(made.weight);
    plan_->products_.push_back(std::move(prepared));
    program_.instructions.push_back(instruction);
    program_.instructions.back().product = static_cast<int32_t>(plan_->products_.size() - 1);

    if (shared) return {};
    for (const engine::WeightSource& source : product.sources) {
      done_ += source.data.size();
      size_t& pending = pending_[source.data.data()];
      if (!copied) pending += 1;  // the weight itself keeps reading them
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

  /// A vector goes to the engine that reads it, rotary tables go to all.
  Status write_constants() {
    vector_engines_.assign(program_.vectors.size(), 0);
    for (const Instruction& instruction : plan_->instructions_) {
      for (const int32_t vector : {instruction.vector, instruction.vector2}) {
        if (vector >= 0) vector_engines_[to_size(vector)] = instruction.engine;
      }
    }
    plan_->vectors_.resize(program_.vectors.size());
    plan_->constants_.resize(plan_->engines_.size());
    plan_->inv_freq_.assign(plan_->engines_.size(), {});
    for (auto& tables : plan_->inv_freq_) tables.resize(graph_.ropes.size());
    for (int32_t engine = 0; to_size(engine) < plan_->engines_.size(); ++engine) {
      GEN_TRY(write_constants_of(engine));
    }
    return {};
  }

  Status write_constants_of(int32_t engine) {
    size_t bytes = 0;
    const auto each = [&](const auto& visit) -> Status {
      for (size_t i = 0; i < program_.vectors.size(); ++i) {
        if (vector_engines_[i] == engine) GEN_TRY(visit(program_.vectors[i], &plan_->vectors_[i]));
      }
      for (size_t i = 0; i < graph_.ropes.size(); ++i) {
        GEN_TRY(visit(graph_.ropes[i].inv_freq, &plan_->inv_freq_[to_size(engine)][i]));
      }
      return {};
    };
    GEN_TRY(each([&](const std::vector<float>& values, auto*) -> Status {
      bytes += align_up(values.size() * sizeof(float));
      return {};
    }));
    engine::EngineMemory& memory = engine_of(engine).memory();
    engine::EngineBuffer& constants = plan_->constants_[to_size(engine)];
    GEN_ASSIGN(constants, memory.allocate(bytes));
    engine::EnginePtr<std::byte> next = constants.data();
    plan_->resident_bytes_ += bytes;
    return each([&](const std::vector<float>& values, auto* place) -> Status {
      *place = next.as<const float>();
      const size_t size = values.size() * sizeof(float);
      const engine::EnginePtr<std::byte> to = next;
      next = next + static_cast<std::ptrdiff_t>(align_up(size));
      return memory.write(to, values.data(), size);
    });
  }

  /// Whether this plan adds adapters to what the instruction makes.
  [[nodiscard]] bool adapts(const Instruction& of, const ExecutionPlan::Prepared& product) const {
    if (of.op != Op::kEmbed) return of.x[2].present();
    return options_.adapter_rank > 0 && !product.sites.empty();
  }

  /// The shape of what adapters add to a site of a product.
  static SiteShape shape_of(const Instruction& of, const SiteSlice& slice,
                            const engine::Weight& weight) {
    // Rows of the embedding are what A has by token.
    const int64_t in = of.op == Op::kEmbed ? weight.out_features() : weight.in_features();
    const int64_t matrices = of.op == Op::kExperts ? weight.count() : 1;
    return {slice.site, in, slice.cols, matrices, of.engine};
  }

  /// The tables of adapter sites, for products that have sites.
  Status write_sites() {
    plan_->adapter_rank_ = options_.adapter_rank;
    plan_->low_rank_sites_.resize(plan_->engines_.size());
    for (int32_t engine = 0; to_size(engine) < plan_->engines_.size(); ++engine) {
      GEN_TRY(write_sites_of(engine));
    }
    return {};
  }

  Status write_sites_of(int32_t engine) {
    std::vector<engine::LowRankSite> all;
    std::vector<std::pair<size_t, size_t>> firsts;  // product, its first site
    for (const Instruction& instruction : plan_->instructions_) {
      if (instruction.product < 0 || instruction.op == Op::kAdapterIn) continue;
      if (instruction.engine != engine) continue;
      const ExecutionPlan::Prepared& product = plan_->products_[to_size(instruction.product)];
      const bool adapted = adapts(instruction, product);
      if (adapted) firsts.emplace_back(to_size(instruction.product), all.size());
      int32_t u = 0;
      for (const SiteSlice& slice : product.sites) {
        plan_->site_shapes_.push_back(shape_of(instruction, slice, *product.weight));
        if (!adapted) continue;
        all.push_back({slice.first, slice.cols, slice.site, u});
        u += options_.adapter_rank;
      }
    }
    if (all.empty()) return {};
    const size_t bytes = all.size() * sizeof(all[0]);
    engine::EngineMemory& memory = engine_of(engine).memory();
    engine::EngineBuffer& sites = plan_->low_rank_sites_[to_size(engine)];
    GEN_ASSIGN(sites, memory.allocate(bytes));
    for (const auto& [product, first] : firsts) {
      plan_->products_[product].low_rank =
          sites.data().as<const engine::LowRankSite>() + static_cast<std::ptrdiff_t>(first);
    }
    plan_->resident_bytes_ += bytes;
    return memory.write(sites.data(), all.data(), bytes);
  }

  void place_values() {
    std::vector<ProgramValue>& values = program_.values;
    for (ProgramValue& value : values) {
      value.row_bytes = value.packed
                            ? engine_of(value.engine).activation_bytes(value.forms, value.cols)
                            : align_up(static_cast<size_t>(value.cols) * sizeof(float));
      value.row_bytes *= to_size(value.slots);
    }
    find_lifetimes();
    share_in_place();
    for (int32_t engine = 0; to_size(engine) < plan_->engines_.size(); ++engine) {
      plan_->row_bytes_.push_back(place_values_of(engine, false));
      plan_->selected_row_bytes_.push_back(place_values_of(engine, true));
    }
    for (size_t i = 0; i < values.size(); ++i) values[i].offset = values[root(i)].offset;
    plan_->values_ = std::move(values);
  }

  /// Size of one row of an engine's arena.
  size_t place_values_of(int32_t engine, bool selected) {
    std::vector<ProgramValue>& values = program_.values;
    std::vector<Lifetime> lives;
    std::vector<size_t> owners;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool used = lives_[i].first <= lives_[i].last;
      if (values[i].engine != engine || values[i].selected != selected || root(i) != i || !used) {
        continue;
      }
      lives.push_back(lives_[i]);
      lives.back().row_bytes = values[i].row_bytes;
      owners.push_back(i);
    }
    const Placement placement = place(lives);
    for (size_t i = 0; i < owners.size(); ++i) values[owners[i]].offset = placement.offsets[i];
    return placement.row_bytes;
  }

  void find_lifetimes() {
    const auto never = static_cast<int32_t>(plan_->instructions_.size());
    lives_.assign(program_.values.size(), Lifetime{never, -1, 0});
    for (int32_t i = 0; i < never; ++i) {
      for_operands(plan_->instructions_[to_size(i)], [&](const Operand& operand, bool) {
        Lifetime& life = lives_[to_size(operand.value)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      });
    }
  }

  /// The result may reuse the memory of an operand without later readers, if the operation allows
  /// it.
  void share_in_place() {
    owner_.resize(program_.values.size());
    for (size_t i = 0; i < owner_.size(); ++i) owner_[i] = i;
    for (int32_t i = 0; i < static_cast<int32_t>(plan_->instructions_.size()); ++i) {
      const Instruction& instruction = plan_->instructions_[to_size(i)];
      const uint8_t in_place = engine::op_info(instruction.op).in_place;
      const auto reads = instruction.reads();
      const Operand& y = instruction.y;
      for (size_t operand = 0; operand < reads.size(); ++operand) {
        const Operand* const term = reads[operand];
        if ((in_place >> operand & 1) == 0 || !term->present() ||
            root(to_size(y.value)) == root(to_size(term->value)))
          continue;
        const size_t from = root(to_size(term->value));
        const ProgramValue& source = program_.values[to_size(term->value)];
        const ProgramValue& target = program_.values[to_size(y.value)];
        const bool whole = term->cols == source.cols && y.cols == target.cols;
        if (!whole || source.selected != target.selected || source.cols != target.cols ||
            source.slots != target.slots) {
          continue;
        }
        // Both operands may be one value; it is then read and written column by column.
        if (lives_[from].last != i || lives_[to_size(y.value)].first != i) continue;
        owner_[to_size(y.value)] = from;
        lives_[from].last = lives_[to_size(y.value)].last;
        break;
      }
    }
  }

  size_t root(size_t value) const {
    while (owner_[value] != value) value = owner_[value];
    return value;
  }

  /// All states must be in one memory.
  Status find_state_engine() {
    int32_t found = -1;
    for (const Instruction& instruction : plan_->instructions_) {
      if (engine::op_info(instruction.op).effect != engine::Effect::kState) continue;
      if (found >= 0 && found != instruction.engine) {
        return error(Code::kUnsupported, "recurrent layers cannot be split between engines");
      }
      found = instruction.engine;
    }
    plan_->state_engine_ = std::max(found, 0);
    return {};
  }

  void copy_facts() {
    plan_->ropes_ = graph_.ropes;
    for (const RopeSpec& rope : plan_->ropes_) {
      plan_->tables_.push_back({rope.kind, rope.n_dims, rope.inv_freq.data(), rope.magnitude});
    }
    plan_->layers_ = cache_layers(graph_, plan_->tables_);
    for (const Node& node : graph_.nodes) {
      if (node.op != Op::kRopeAppend || node.attention.use != CacheUse::kOwn) continue;
      plan_->layer_engines_.push_back(engine_for(engine_of_block_, node.block));
    }
    plan_->given_ = graph_.given;
    plan_->given_engines_.assign(graph_.given.size(), -1);
    for (const Node& node : graph_.nodes) {
      if (node.op != Op::kRopeAppend || node.attention.use != CacheUse::kGiven) continue;
      plan_->given_engines_[to_size(node.layer)] = engine_for(engine_of_block_, node.block);
    }
    if (!graph_.states.empty()) {
      plan_->states_ = std::make_shared<const cache::StateLayout>(
          cache::state_layout(graph_.states, graph_.facts));
    }
    plan_->vocab_ = graph_.vocab;
    plan_->hidden_ = graph_.hidden;
    plan_->logits_ = graph_.logits;
    plan_->scores_ = graph_.scores;
    plan_->n_taps_ = graph_.n_taps;
    plan_->features_ = graph_.features;
    plan_->normed_tap_ = std::any_of(
        graph_.nodes.begin(), graph_.nodes.end(),
        [](const Node& node) { return node.op == Op::kTap && node.layer == kNormedTap; });
    plan_->observed_ = options_.observed;
    plan_->max_rows_ = options_.max_rows;
    plan_->max_seq_len_ = options_.max_seq_len;
    const size_t widest =
        *std::max_element(plan_->selected_row_bytes_.begin(), plan_->selected_row_bytes_.end());
    const auto fitting =
        static_cast<int64_t>(options_.selected_arena_bytes / std::max(widest, kBufferAlign));
    plan_->selected_chunk_ = std::max(kLeastSelectedRows, fitting);
  }

  const Graph& graph_;
  EngineOfBlock engine_of_block_;
  const CompileOptions& options_;
  std::unique_ptr<ExecutionPlan> plan_;
  Program program_;
  std::vector<std::shared_ptr<engine::WeightMemory>> weights_;  // by engine
  std::vector<int32_t> vector_engines_;                         // that read a vector
  size_t total_ = 0;                                            // bytes of all sources
  size_t done_ = 0;
  size_t next_base_ = 0;                                  // index of the base's next product
  std::unordered_map<const std::byte*, size_t> pending_;  // number of pending reads of a source
  std::vector<Lifetime> lives_;                           // by value
  std::vector<size_t> owner_;                             // the value whose memory a value reuses
};

Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph, Engines engines,
                                                     const EngineOfBlock& engine_of_block,
                                                     const CompileOptions& options) {
  if (engines.empty() || std::count(engines.begin(), engines.end(), nullptr) > 0) {
    return error(Code::kInvalidArgument, "no engine to compile for");
  }
  if (engines.size() > 1 && engine_of_block.empty()) {
    return error(Code::kInvalidArgument, "%zu engines, and no block for them", engines.size());
  }
  for (const auto& map : {engine_of_block.blocks, engine_of_block.experts}) {
    for (size_t block = 0; block < map.size(); ++block) {
      if (map[block] >= 0 && to_size(map[block]) < engines.size()) continue;
      return error(Code::kInvalidArgument, "block %zu is for engine %d of %zu", block, map[block],
                   engines.size());
    }
  }
  if (options.max_rows < 1 || options.max_seq_len < 1) {
    return error(Code::kInvalidArgument, "a plan for %d rows and %d positions", options.max_rows,
                 options.max_seq_len);
  }
  return Compiler(graph, std::move(engines), engine_of_block, options).run();
}

Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph,
                                                     std::shared_ptr<engine::Engine> engine,
                                                     const CompileOptions& options) {
  return compile(graph, Engines{std::move(engine)}, {}, options);
}

}  // namespace gen::graph
