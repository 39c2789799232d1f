// SPDX-License-Identifier: Apache-2.0
// Walks a plan's instructions for one batch: binds each (bind.h), tells tracers, and hands it to
// the engine. Instructions over selected rows run last, in chunks, so that logits of many rows need
// no arena of their size. See execution_plan.h.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/op_cost.h"
#include "graph/bind.h"
#include "graph/execution_plan.h"
#include "graph/traced_caches.h"

namespace gen::graph {
namespace {

size_t at(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

class PlanRunner {
 public:
  PlanRunner(const ExecutionPlan& plan, const Batch& batch, Workspace& workspace)
      : plan_(plan),
        batch_(batch),
        work_(workspace),
        engine_(*plan.engine_),
        stream_(*workspace.stream_),
        binder_(plan, batch, workspace) {}

  Status run() {
    GEN_TRY(check_batch(batch_, plan_.limits()));
    GEN_TRY(prepare());
    Status status = run_all();
    // Whatever was enqueued must end before the caller takes its memory back.
    Status finished = engine_.finish(stream_);
    return status.ok() ? finished : status;
  }

 private:
  Status prepare() {
    const bool all_rows = wants_selected_tap();
    const auto wanted = std::count_if(batch_.wants_logits.begin(), batch_.wants_logits.end(),
                                      [](uint8_t wants) { return wants != 0; });
    const int64_t most = all_rows ? batch_.rows() : wanted;
    const int64_t chunk = std::min(plan_.selected_chunk_, most);
    GEN_TRY(work_.reserve(plan_.row_bytes_ * static_cast<size_t>(batch_.rows()),
                          plan_.selected_row_bytes_ * static_cast<size_t>(chunk)));
    return work_.fill(batch_, all_rows);
  }

  /// Whether the batch asks for a tap that lies among the selected instructions.
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

  Status run_all() {
    const StepBlock::RowList wanted = work_.block_.wanted_rows();
    const StepBlock::RowList all = work_.block_.all_rows();
    const bool nothing_selected = wanted.n == 0 && all.n == 0;
    for (size_t i = 0; i < plan_.first_selected_; ++i) {
      const Instruction& instruction = plan_.instructions_[i];
      if (instruction.skippable && nothing_selected) continue;
      GEN_TRY(step(instruction));
    }
    // Taps show all rows, so the way to them is run for all; logits are for those that want them.
    taps_ = true;
    GEN_TRY(run_selected(all, plan_.end_selected_taps_));
    taps_ = false;
    return run_selected(wanted, plan_.instructions_.size());
  }

  /// Selected instructions before `end` for `rows`, chunk by chunk, which use the same arena.
  Status run_selected(const StepBlock::RowList& rows, size_t end) {
    for (int64_t first = 0; first < rows.n;) {
      const int64_t n = std::min(rows.n - first, plan_.selected_chunk_);
      binder_.select({rows.rows + first, n});
      first_selected_row_ = static_cast<size_t>(first);
      for (size_t i = plan_.first_selected_; i < end; ++i) {
        const Instruction& instruction = plan_.instructions_[i];
        if (instruction.op == Op::kTap && !taps_) continue;
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
    event.appends = turns && instruction.x2.present();  // else the layer is another block's
    if (instruction.product >= 0)
      event.detail = plan_.products_[at(instruction.product)].name.c_str();
    event.layer = instruction.layer;
    const Operand& output = instruction.y.present()        ? instruction.y
                            : instruction.packed.present() ? instruction.packed
                                                           : instruction.x;
    event.rows = binder_.rows_of(output);
    event.cols = output.cols;
    if (info.effect != engine::Effect::kHost) {
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
    if (turns) outputs.add(binder_, instruction.x);
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

    engine::TraceValue list[4];
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
      return engine_.finish(stream_);  // a device has only been told so far; a clock should see it
    });
  }

  Status execute(const Instruction& instruction) {
    if (instruction.op == Op::kTap) return tap(instruction);
    if (instruction.op == Op::kLogits) {
      return download(instruction.x,
                      batch_.logits + first_selected_row_ * static_cast<size_t>(plan_.logits_));
    }
    if (instruction.op == Op::kEmbed && batch_.embeddings != nullptr) {
      return take_embeddings(instruction);
    }
    if (instruction.attention.n_heads > 0) GEN_TRY(stage(instruction.layer));
    for (size_t call = 0; call < binder_.calls(instruction); ++call) {
      GEN_TRY(engine_.run(stream_, binder_.bind(instruction, call)));
    }
    return {};
  }

  /// Has caches bring a layer, where they keep some elsewhere.
  Status stage(int32_t layer) {
    if (!work_.block_.stages() || layer == staged_layer_) return {};
    GEN_TRY(engine_.finish(stream_));  // earlier layers have been where this one will be
    for (const BatchSequence& sequence : batch_.sequences) {
      GEN_TRY(sequence.cache->stage(layer, sequence.plan));
    }
    staged_layer_ = layer;
    return {};
  }

  [[nodiscard]] std::span<const engine::KvRows> host_sequences(const Instruction& instruction,
                                                               size_t call) const {
    if (instruction.attention.n_heads == 0) return {};
    const StepBlock::Group& group = work_.block_.groups()[call];
    return work_.block_.host_sequences(group, group.layers[at(instruction.layer)].part);
  }

  /// In place of looking tokens up.
  Status take_embeddings(const Instruction& instruction) {
    const engine::MatrixView y = binder_.matrix(instruction.y);
    for (int64_t t = 0; t < y.rows; ++t) {
      GEN_TRY(engine_.upload(stream_, (y.data + t * y.stride).as<std::byte>(),
                             batch_.embeddings + t * y.cols,
                             static_cast<size_t>(y.cols) * sizeof(float)));
    }
    return {};
  }

  Status tap(const Instruction& instruction) {
    const size_t first_row = instruction.selected ? first_selected_row_ : 0;
    const size_t offset = first_row * static_cast<size_t>(instruction.x.cols);
    for (const Tap& tap : batch_.taps) {
      if (tap.layer == instruction.layer) GEN_TRY(download(instruction.x, tap.out + offset));
    }
    return {};
  }

  Status download(const Operand& operand, float* out) {
    const engine::ConstMatrixView x = binder_.const_matrix(operand);
    const auto row_bytes = static_cast<size_t>(x.cols) * sizeof(float);
    if (x.stride == x.cols) {
      return engine_.download(stream_, out, x.data.as<const std::byte>(),
                              row_bytes * static_cast<size_t>(x.rows));
    }
    for (int64_t t = 0; t < x.rows; ++t) {
      GEN_TRY(engine_.download(stream_, out + t * x.cols,
                               (x.data + t * x.stride).as<const std::byte>(), row_bytes));
    }
    return {};
  }

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  engine::Engine& engine_;
  engine::Stream& stream_;
  Binder binder_;
  int32_t staged_layer_ = -1;
  size_t first_selected_row_ = 0;  // of this chunk, among those it was cut from
  bool taps_ = false;              // selected taps are being run
  std::vector<engine::TraceCache> traced_caches_;
};

Status ExecutionPlan::run(const Batch& batch, Workspace& workspace) const {
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
  limits.layers = layers_;
  return limits;
}

std::span<const SiteSlice> ExecutionPlan::sites(const Instruction& instruction) const noexcept {
  if (instruction.product < 0) return {};
  return products_[at(instruction.product)].sites;
}

}  // namespace gen::graph
