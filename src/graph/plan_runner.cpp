// SPDX-License-Identifier: Apache-2.0
// Executes a plan's instructions for one batch: binds each (bind.h), calls tracers, and passes it
// to the engine. Instructions over selected rows run last, in chunks, so that logits of many rows
// do not need an arena of their size. See execution_plan.h.
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/mass_slices.h"
#include "engine/trace/op_cost.h"
#include "base/to_size.h"
#include "graph/bind.h"
#include "graph/execution_plan.h"
#include "graph/traced_caches.h"

namespace gen::graph {

class PlanRunner {
 public:
  PlanRunner(const ExecutionPlan& plan, const Batch& batch, Workspace& workspace)
      : plan_(plan), batch_(batch), work_(workspace), binder_(plan, batch, workspace) {}

  Status run() {
    GEN_TRY(check_batch(batch_, plan_.limits()));
    GEN_TRY(prepare(false));
    return guarded(work_, [this] { return run_all(); });
  }
  /// Enqueues one step of several. `fed`: its tokens are the best tokens of the step before.
  Status run_one(bool fed) {
    GEN_TRY(prepare(fed));
    if (fed) GEN_TRY(feed());
    return run_all();
  }

  /// All work enqueued by `work` must end before the caller's memory may be freed, even if a
  /// tracer, the caller's own work or an engine without memory has thrown.
  template <typename F>
  static Status guarded(Workspace& workspace, F&& work) {
    Status status;
    try {
      status = work();
      // Inside the try block, since an engine may throw when it runs the gathered operations.
      if (status.ok()) status = flush_all(workspace);
    } catch (...) {
      drop_gathered(workspace);
      static_cast<void>(finish_all(workspace));
      throw;
    }
    if (!status.ok()) drop_gathered(workspace);
    Status finished = finish_all(workspace);
    return status.ok() ? finished : status;
  }

 private:
  using Side = Workspace::Side;

  [[nodiscard]] Side& side(int32_t engine) const noexcept { return work_.sides_[to_size(engine)]; }
  [[nodiscard]] Side& side(const Instruction& instruction) const noexcept {
    return side(instruction.engine);
  }
  static Status finish(Side& of) {
    Status flushed = flush(of);
    Status finished = of.engine->finish(*of.stream);
    return flushed.ok() ? std::move(finished) : std::move(flushed);
  }
  /// Finishes all engines even if one fails; returns the first failure.
  static Status finish_all(Workspace& workspace) {
    Status first;
    for (Side& each : workspace.sides_) {
      Status status = finish(each);
      if (first.ok()) first = std::move(status);
    }
    return first;
  }
  static Status run(Side& of, const engine::OpArgs& args) {
    if (!of.engine->gathers()) return of.engine->run(*of.stream, args);
    of.gathered.push_back(args);
    return {};
  }
  /// Runs the gathered operations; must be called before any later work.
  static Status flush(Side& of) {
    if (of.gathered.empty()) return {};
    Status status = of.engine->run_all(*of.stream, of.gathered);
    of.gathered.clear();
    return status;
  }
  static Status flush_all(Workspace& workspace) {
    for (Side& each : workspace.sides_) GEN_TRY(flush(each));
    return {};
  }
  static void drop_gathered(Workspace& workspace) noexcept {
    for (Side& each : workspace.sides_) each.gathered.clear();
  }
  static Status upload(Side& of, engine::EnginePtr<std::byte> to, const void* from, size_t bytes) {
    GEN_TRY(flush(of));
    return of.engine->upload(*of.stream, to, from, bytes);
  }
  static Status download(Side& of, void* to, engine::EnginePtr<const std::byte> from,
                         size_t bytes) {
    GEN_TRY(flush(of));
    return of.engine->download(*of.stream, to, from, bytes);
  }

  Status prepare(bool fed) {
    selected_taps_ = wants_selected_tap();
    const bool placed = std::any_of(batch_.taps.begin(), batch_.taps.end(),
                                    [](const Tap& tap) { return static_cast<bool>(tap.at); });
    const auto wanted =
        static_cast<int64_t>(batch_.wanting(kWantsLogits) + batch_.wanting(kWantsBest));
    const bool padded = may_be_padded();
    const auto places = [&](int64_t n) {
      return padded ? work_.sides_[0].engine->step_rows(n) : n;
    };
    const int64_t most = selected_taps_ ? batch_.rows() : places(wanted);
    const int64_t chunk = std::min(plan_.selected_chunk_, most);
    for (size_t i = 0; i < plan_.engines_.size(); ++i) {
      const auto room = [&](size_t row_bytes, int64_t n, int64_t limit) -> Workspace::Room {
        const int64_t with_spare = std::min(work_.sides_[i].engine->room_rows(n), limit);
        return {row_bytes * static_cast<size_t>(n), row_bytes * static_cast<size_t>(with_spare)};
      };
      GEN_TRY(work_.reserve(room(plan_.row_bytes_[i], places(batch_.rows()), plan_.max_rows_),
                            room(plan_.selected_row_bytes_[i], chunk, plan_.selected_chunk_), i));
    }
    StepBlock::Lists lists = plan_.lists_;
    lists.all = selected_taps_ || placed;
    return work_.fill(batch_, lists, padded, fed);
  }

  /// The best tokens of the previous rows become the tokens of the current rows.
  Status feed() {
    Side& of = work_.sides_[0];
    const auto n = static_cast<int64_t>(batch_.sequences.size());
    const engine::ConstMatrixView best = {of.block.best().args.tokens.as<const float>(), n, 1, 1};
    const engine::MatrixView tokens = {of.block.token_places().as<float>(), n, 1, 1};
    return run(of, engine::SelectRowsArgs{best, of.block.at(of.block.wanted_rows()), tokens});
  }

  /// Whether padding rows may be added. A step that is observed has only its own rows.
  [[nodiscard]] bool may_be_padded() const {
    return plan_.engines_.size() == 1 && batch_.taps.empty() && batch_.embeddings.empty() &&
           batch_.features.empty() && batch_.tracer == nullptr &&
           work_.sides_[0].engine->step_rows(batch_.rows()) <= plan_.max_rows_;
  }

  /// Whether the batch asks for a tap among the selected instructions.
  [[nodiscard]] bool wants_selected_tap() const {
    for (size_t i = plan_.first_selected_; i < plan_.end_selected_taps_; ++i) {
      if (plan_.instructions_[i].op == Op::kTap && wants_tap(plan_.instructions_[i])) return true;
    }
    return false;
  }
  [[nodiscard]] bool wants_tap(const Instruction& instruction) const {
    return std::any_of(batch_.taps.begin(), batch_.taps.end(),
                       [&](const Tap& tap) { return tap.layer == instruction.layer; });
  }

  /// Whether the selected rows are all rows, in the order of the batch: each wants the same.
  [[nodiscard]] bool selects_all() const {
    const auto same = [&](uint8_t want) { return want == batch_.wants[0]; };
    return batch_.wants[0] != kWantsNothing &&
           std::all_of(batch_.wants.begin(), batch_.wants.end(), same);
  }

  Status run_all() {
    const StepBlock::RowList wanted = work_.block().wanted_rows();
    const StepBlock::RowList all = selected_taps_ ? work_.block().all_rows() : StepBlock::RowList();
    const bool nothing_selected = wanted.n == 0 && all.n == 0;
    for (size_t i = 0; i < plan_.first_selected_; ++i) {
      const Instruction& instruction = plan_.instructions_[i];
      if (instruction.skippable && nothing_selected) continue;
      GEN_TRY(step(instruction));
    }
    // Taps are of all rows, so the instructions before them run for all; logits only for selected
    // rows. Where these are the same rows, both run at once.
    taps_ = selected_taps_;
    if (!selects_all()) {
      GEN_TRY(run_selected(all, plan_.end_selected_taps_));
      taps_ = false;
    }
    GEN_TRY(run_selected(wanted, plan_.instructions_.size()));
    GEN_TRY(download_asides());
    return during();
  }

  /// Selected instructions before `end` for `rows`, chunk by chunk, which use the same arena.
  Status run_selected(const StepBlock::RowList& rows, size_t end) {
    for (int64_t first = 0; first < rows.n;) {
      const int64_t n = std::min(rows.n - first, plan_.selected_chunk_);
      binder_.select(rows.part(first, n));
      first_selected_row_ = first;
      for (size_t i = plan_.first_selected_; i < end; ++i) {
        const Instruction& instruction = plan_.instructions_[i];
        if (instruction.op == Op::kTap && !taps_) continue;
        if (instruction.op == Op::kBest &&
            (work_.block().best().n == 0 || first + n <= work_.block().best().first)) {
          continue;
        }
        if (instruction.op == Op::kLogits && first >= work_.block().best().first) continue;
        GEN_TRY(step(instruction));
      }
      first += n;
    }
    return {};
  }

  /// Tells the tracer that an instruction begins.
  void trace(const Instruction& instruction) {
    const engine::OpInfo& info = engine::op_info(instruction.op);
    engine::TraceEvent event;
    event.index = static_cast<int32_t>(&instruction - plan_.instructions_.data());
    event.op = info.name;
    const bool turns = info.effect == engine::Effect::kCache;
    event.appends = turns && instruction.x[1].present();  // otherwise the layer is another block's
    if (instruction.product >= 0)
      event.detail = plan_.products_[to_size(instruction.product)].name.c_str();
    event.layer = instruction.layer;
    const Operand& output = instruction.y.present()        ? instruction.y
                            : instruction.packed.present() ? instruction.packed
                                                           : instruction.x[0];
    event.rows = binder_.rows_of(output);
    event.cols = output.cols;
    if (engine::is_engine_op(instruction.op)) {
      for (size_t call = 0; call < binder_.calls(instruction); ++call) {
        const engine::OpCost cost =
            engine::op_cost(binder_.bind(instruction, call), host_sequences(instruction, call));
        event.bytes += cost.bytes;
        event.products += cost.products;
      }
    }
    TracedValues inputs;
    for (const Operand* x : instruction.reads()) inputs.add(binder_, *x);
    TracedValues outputs;
    for (const Operand* y : instruction.writes()) outputs.add(binder_, *y);
    if (turns) outputs.add(binder_, instruction.x[0]);
    event.inputs = inputs.all();
    event.outputs = outputs.all();
    if (instruction.attention.n_heads > 0 && turns == event.appends) {
      list_caches(instruction.attention, batch_.sequences, &traced_caches_);
      event.caches = traced_caches_;
    }
    batch_.tracer->record(event);
  }

  /// Values of an instruction, each once.
  struct TracedValues {
    void add(const Binder& binder, const Operand& operand) {
      if (!operand.present()) return;
      for (size_t i = 0; i < n; ++i) {
        if (list[i].value == operand.value) return;
      }
      list[n++] = {operand.value, binder.rows_of(operand), binder.value(operand).cols};
    }
    [[nodiscard]] std::span<const engine::TraceValue> all() const { return {list, n}; }

    engine::TraceValue list[engine::kMaxInputs + 1];
    size_t n = 0;
  };

  Status step(const Instruction& instruction) {
    if (batch_.cancel != nullptr && batch_.cancel->raised()) {
      return error(Code::kCancelled, "cancelled within a forward pass");
    }
    if (batch_.tracer == nullptr) return execute(instruction);
    trace(instruction);
    return engine::run_traced(*batch_.tracer, [&]() -> Status {
      GEN_TRY(execute(instruction));
      return finish(side(instruction));  // on a device, too, so that clocks include the work
    });
  }

  Status execute(const Instruction& instruction) {
    if (instruction.op == Op::kTap) return tap(instruction);
    if (instruction.op == Op::kLogits) return logits(instruction);
    if (instruction.op == Op::kBest) return best(instruction);
    if (instruction.op == Op::kTransfer) return transfer(instruction);
    if (instruction.op == Op::kFeatures) return take_features(instruction);
    if (instruction.attention.n_heads > 0) GEN_TRY(stage(instruction.layer));
    if (batch_.observer != nullptr) GEN_TRY(observe(instruction));
    for (size_t call = 0; call < binder_.calls(instruction); ++call) {
      GEN_TRY(run(side(instruction), binder_.bind(instruction, call)));
    }
    if (instruction.op == Op::kEmbed && !batch_.embeddings.empty() &&
        instruction.product == plan_.own_embedding_) {
      return take_embeddings(instruction);
    }
    return {};
  }

  /// Shows the observer what an instruction is about to read, if it is a product.
  Status observe(const Instruction& instruction) {
    if (instruction.op != Op::kLinear && instruction.op != Op::kExperts) return {};
    Side& of = side(instruction);
    GEN_TRY(finish(of));
    engine::EngineMemory& memory = of.engine->memory();
    const engine::ConstMatrixView x = binder_.const_matrix(instruction.x[0]);
    const ExecutionPlan::Prepared& product = plan_.products_[to_size(instruction.product)];
    ProductInput input;
    input.product = instruction.product;
    input.tensors = product.tensors;
    // The float rows come first in packed rows.
    input.data = host(memory, x.data);
    input.rows = x.rows;
    input.cols = x.cols;
    input.stride = x.stride;
    if (instruction.op == Op::kExperts) {
      const engine::ConstRoutes routes = binder_.const_routes(instruction.x[1]);
      input.matrices = product.weight->count();
      input.routes = host(memory, routes.data);
      input.routed = routes.rows;
      input.n_used = routes.n_used;
      input.route_stride = routes.stride;
    }
    return batch_.observer->observe(input);
  }

  template <typename T>
  static const T* host(engine::EngineMemory& memory, engine::EnginePtr<const T> at) {
    return reinterpret_cast<const T*>(memory.host(at.template as<std::byte>()));
  }

  /// The selected rows that want logits; they are the first ones.
  Status logits(const Instruction& instruction) {
    engine::ConstMatrixView x = binder_.const_matrix(instruction.x[0]);
    x.rows = std::min(x.rows, work_.block().best().first - first_selected_row_);
    return download(side(instruction), x, batch_.logits + first_selected_row_ * plan_.logits_);
  }

  Status best(const Instruction& instruction) {
    GEN_TRY(during());
    const engine::OpArgs bound = binder_.bind(instruction, 0);
    Side& of = side(instruction);
    GEN_TRY(run(of, bound));
    const auto& args = std::get<engine::BestArgs>(bound);
    const StepBlock::Best all = of.block.best();
    const int64_t row = std::max<int64_t>(first_selected_row_ - all.first, 0);
    const auto rows = static_cast<size_t>(std::clamp<int64_t>(all.n - row, 0, args.x.rows));
    const int64_t first = row * all.args.k;
    const size_t n = rows * to_size(all.args.k);
    GEN_TRY(download(of, batch_.best.tokens + first, args.tokens.as<const std::byte>(),
                     n * sizeof(int32_t)));
    GEN_TRY(download(of, batch_.best.logits + first, args.values.as<const std::byte>(),
                     n * sizeof(float)));
    if (!args.mass) return {};
    GEN_TRY(download(of, batch_.best.mass + static_cast<size_t>(row) * all.mass_slices,
                     args.mass.as<const std::byte>(), rows * all.mass_slices * sizeof(double)));
    if (!args.slice) return {};
    return download(of, batch_.best.slice + row * kMassSlice, args.slice.as<const std::byte>(),
                    rows * kMassSlice * sizeof(float));
  }

  /// Tells the tracer of all rows at once, however many chunks there were.
  Status download_asides() {
    Side& of = side(plan_.instructions_.back());
    const size_t bytes = of.block.n_aside() * sizeof(float);
    if (bytes == 0) return {};
    return download(of, batch_.best.aside_logits, of.block.aside_logits().as<const std::byte>(),
                    bytes);
  }

  /// Copies rows through the host, which waits for the source engine.
  Status transfer(const Instruction& instruction) {
    const engine::ConstMatrixView x = binder_.const_matrix(instruction.x[0]);
    const engine::MatrixView y = binder_.matrix(instruction.y);
    Side& from = side(binder_.value(instruction.x[0]).engine);
    Side& to = side(instruction);
    work_.transfer_.resize(static_cast<size_t>(x.rows * x.cols));
    GEN_TRY(download(from, x, work_.transfer_.data()));
    GEN_TRY(finish(from));
    const float* row = work_.transfer_.data();
    const auto row_bytes = static_cast<size_t>(x.cols) * sizeof(float);
    for (int64_t t = 0; t < y.rows; ++t, row += x.cols) {
      GEN_TRY(upload(to, (y.data + t * y.stride).as<std::byte>(), row, row_bytes));
    }
    return {};
  }

  /// The caller's own work, once, and the masks that it may have written.
  Status during() {
    if (batch_.during.call == nullptr || during_) return {};
    during_ = true;
    Side& of = side(plan_.instructions_.back());  // the engine with the logits
    GEN_TRY(flush(of));                           // the device works meanwhile
    GEN_TRY(batch_.during.call(batch_.during.context));
    return of.block.refresh_masks(batch_, *of.engine, *of.stream);
  }

  /// Lets caches stage a layer, if they keep layers elsewhere.
  Status stage(int32_t layer) {
    if (!work_.block().stages() || layer == staged_layer_) return {};
    GEN_TRY(finish_all(work_));  // this layer overwrites an earlier one
    for (const BatchSequence& sequence : batch_.sequences) {
      GEN_TRY(sequence.cache->stage(layer, sequence.plan));
    }
    staged_layer_ = layer;
    return {};
  }

  [[nodiscard]] std::span<const engine::KvRows> host_sequences(const Instruction& instruction,
                                                               size_t call) const {
    if (instruction.attention.n_heads == 0) return {};
    const StepBlock::Group& group = work_.block().groups()[call];
    return work_.block().host_sequences(group, group.layers[to_size(instruction.layer)].part);
  }

  /// The embeddings of rows without a token.
  Status take_embeddings(const Instruction& instruction) {
    const engine::MatrixView y = binder_.matrix(instruction.y);
    const auto cols = static_cast<size_t>(y.cols);
    Side& of = side(instruction);
    for (int64_t t = 0; t < y.rows; ++t) {
      const int32_t token = batch_.tokens[static_cast<size_t>(t)];
      if (token >= 0) continue;
      GEN_TRY(upload(of, (y.data + t * y.stride).as<std::byte>(),
                     batch_.embeddings.data() + static_cast<size_t>(-1 - token) * cols,
                     cols * sizeof(float)));
    }
    return {};
  }

  Status take_features(const Instruction& instruction) {
    const engine::MatrixView y = binder_.matrix(instruction.y);
    const auto cols = static_cast<size_t>(y.cols);
    Side& of = side(instruction);
    for (int64_t t = 0; t < y.rows; ++t) {
      GEN_TRY(upload(of, (y.data + t * y.stride).as<std::byte>(),
                     batch_.features.data() + static_cast<size_t>(t) * cols, cols * sizeof(float)));
    }
    return {};
  }

  Status tap(const Instruction& instruction) {
    const engine::ConstMatrixView x = binder_.const_matrix(instruction.x[0]);
    const int64_t offset = instruction.selected ? first_selected_row_ * x.cols : 0;
    for (const Tap& tap : batch_.taps) {
      if (tap.layer != instruction.layer) continue;
      if (tap.at) {
        const engine::MatrixView to{tap.at + offset, x.rows, x.cols, x.cols};
        Side& of = side(instruction);
        const auto each = of.block.at(of.block.all_rows());
        GEN_TRY(run(of, engine::SelectRowsArgs{x, each, to}));
      } else {
        GEN_TRY(download(side(instruction), x, tap.out + offset));
      }
    }
    return {};
  }

  static Status download(Side& of, const engine::ConstMatrixView& x, float* out) {
    const auto row_bytes = static_cast<size_t>(x.cols) * sizeof(float);
    if (x.stride == x.cols) {
      return download(of, out, x.data.as<const std::byte>(),
                      row_bytes * static_cast<size_t>(x.rows));
    }
    for (int64_t t = 0; t < x.rows; ++t) {
      GEN_TRY(
          download(of, out + t * x.cols, (x.data + t * x.stride).as<const std::byte>(), row_bytes));
    }
    return {};
  }

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  Binder binder_;
  int32_t staged_layer_ = -1;
  int64_t first_selected_row_ = 0;  // of this chunk, among those it was cut from
  bool selected_taps_ = false;      // the batch wants some
  bool taps_ = false;               // selected taps are being run
  bool during_ = false;             // batch_.during has been called
  std::vector<engine::TraceCache> traced_caches_;
};

/// Several steps, all enqueued before the first has run.
class MultiStepRunner {
 public:
  MultiStepRunner(const ExecutionPlan& plan, const Batch& batch, Workspace& workspace)
      : plan_(plan), batch_(batch), work_(workspace) {}

  Status run() {
    GEN_TRY(check_batch(batch_, plan_.limits()));
    return PlanRunner::guarded(work_, [this]() -> Status {
      for (int32_t i = 0; i < batch_.multi_steps; ++i) {
        GEN_TRY(PlanRunner(plan_, step(i), work_).run_one(i > 0));
      }
      return {};
    });
  }

 private:
  /// Step i as a batch; the one before is of no use then.
  const Batch& step(int32_t i) {
    Workspace::Step& of = work_.step_;
    const size_t n = batch_.sequences.size();
    of.tokens.assign(n, 0);
    of.wants.assign(n, kWantsBest);
    of.positions.clear();
    of.sequences.assign(batch_.sequences.begin(), batch_.sequences.end());
    for (size_t s = 0; s < n; ++s) {
      BatchSequence& sequence = of.sequences[s];
      const size_t row = to_size(sequence.first_row) + to_size(i);
      if (i == 0) of.tokens[s] = batch_.tokens[row];
      of.positions.push_back(batch_.positions[row]);
      sequence.first_row = static_cast<int32_t>(s);
      sequence.n_rows = 1;
      sequence.planned_before = i;
    }
    step_ = batch_;
    step_.multi_steps = 0;
    step_.tokens = of.tokens;
    step_.positions = of.positions;
    step_.wants = of.wants;
    step_.sequences = of.sequences;
    step_.best.tokens += to_size(i) * n;
    step_.best.logits += to_size(i) * n;
    step_.best.rows = n;
    return step_;
  }

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  Batch step_;
};

Status ExecutionPlan::run(const Batch& batch, Workspace& workspace) const {
  if (batch.multi_steps > 0) return MultiStepRunner(*this, batch, workspace).run();
  return PlanRunner(*this, batch, workspace).run();
}

BatchLimits ExecutionPlan::limits() const noexcept {
  BatchLimits limits;
  limits.vocab = vocab_;
  limits.hidden = hidden_;
  limits.logits = logits_;
  limits.max_rows = max_rows_;
  limits.max_seq_len = max_seq_len_;
  limits.n_taps = n_taps_;
  limits.normed_tap = normed_tap_;
  limits.features = features_;
  engine::Engine& last = *engines_[to_size(instructions_.back().engine)];
  limits.best = scores_ && last.can(Op::kBest);
  limits.means = lists_.firsts;
  limits.multi_step = limits.best && engines_.size() == 1 && states_ == nullptr &&
                      logits_ <= vocab_ && given_.empty();
  limits.far_logits = !last.memory().in_host();
  limits.reads = !given_.empty();
  limits.layers = limits.reads ? given_ : layers_;
  limits.layer_engines = limits.reads ? given_engines_ : layer_engines_;
  limits.engines = engines_;
  if (states_ != nullptr) limits.states = states_->shapes;
  limits.observed = observed_;
  limits.adapter_rank = adapter_rank_;
  limits.adapter_sites = site_numbers(site_shapes_);
  return limits;
}

std::vector<std::span<const std::byte>> ExecutionPlan::host_bytes() const {
  std::vector<std::span<const std::byte>> all;
  for (const Prepared& product : products_) product.weight->list_host_bytes(&all);
  for (size_t i = 0; i < constants_.size(); ++i) {
    const std::byte* const at = engines_[i]->memory().host(constants_[i].data());
    if (at != nullptr) all.emplace_back(at, constants_[i].size());
  }
  return all;
}

std::span<const SiteSlice> ExecutionPlan::sites(const Instruction& instruction) const noexcept {
  if (instruction.product < 0) return {};
  return products_[to_size(instruction.product)].sites;
}

}  // namespace gen::graph
