// SPDX-License-Identifier: Apache-2.0
// Walks a plan's instructions for one batch: binds each (bind.h), tells tracers, and hands it to
// the engine. Instructions over selected rows run last, in chunks, so that logits of many rows need
// no arena of their size. See execution_plan.h.
#include <algorithm>
#include <numeric>
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
    work_.wanted_rows_.clear();
    for (size_t i = 0; i < batch_.wants_logits.size(); ++i) {
      if (batch_.wants_logits[i] != 0) work_.wanted_rows_.push_back(static_cast<int32_t>(i));
    }
    work_.all_rows_.clear();
    if (wants_selected_tap()) {
      work_.all_rows_.resize(at(static_cast<int32_t>(batch_.rows())));
      std::iota(work_.all_rows_.begin(), work_.all_rows_.end(), 0);
    }
    const size_t most = std::max(work_.wanted_rows_.size(), work_.all_rows_.size());
    const auto chunk = std::min(plan_.selected_chunk_, static_cast<int64_t>(most));
    GEN_TRY(work_.reserve(plan_.row_bytes_ * static_cast<size_t>(batch_.rows()),
                          plan_.selected_row_bytes_ * static_cast<size_t>(chunk)));
    work_.sequences_.resize(batch_.sequences.size());
    return find_visible();
  }

  /// Trees: each row sees what its parent sees, and itself. Chains stay causal.
  Status find_visible() {
    for (engine::SequenceRows& rows : work_.sequences_) rows.visible = nullptr;
    if (batch_.parents.empty()) return {};
    size_t words = 0;
    for (const BatchSequence& sequence : batch_.sequences) {
      if (is_tree(sequence)) words += words_of(sequence) * at(sequence.n_rows);
    }
    work_.visible_.assign(words, 0);
    size_t next = 0;
    for (size_t s = 0; s < batch_.sequences.size(); ++s) {
      const BatchSequence& sequence = batch_.sequences[s];
      if (!is_tree(sequence)) continue;
      uint64_t* bits = work_.visible_.data() + next;
      const size_t row_words = words_of(sequence);
      for (int32_t i = 0; i < sequence.n_rows; ++i) {
        const int32_t parent = parent_in(sequence, i);
        uint64_t* row = bits + at(i) * row_words;
        if (parent >= 0) std::copy_n(bits + at(parent) * row_words, row_words, row);
        row[i / 64] |= uint64_t{1} << (i % 64);
      }
      work_.sequences_[s].visible = bits;
      next += row_words * at(sequence.n_rows);
    }
    return {};
  }

  /// Row looked back at, counted from the sequence's first row; -1 for that first row.
  [[nodiscard]] int32_t parent_in(const BatchSequence& sequence, int32_t i) const {
    const int32_t parent = batch_.parents[at(sequence.first_row + i)];
    return parent == -1 ? i - 1 : parent - sequence.first_row;
  }
  [[nodiscard]] bool is_tree(const BatchSequence& sequence) const {
    for (int32_t i = 0; i < sequence.n_rows; ++i) {
      if (parent_in(sequence, i) != i - 1) return true;
    }
    return false;
  }
  static size_t words_of(const BatchSequence& sequence) { return at(sequence.n_rows + 63) / 64; }

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
    const bool nothing_selected = work_.wanted_rows_.empty() && work_.all_rows_.empty();
    for (size_t i = 0; i < plan_.first_selected_; ++i) {
      const Instruction& instruction = plan_.instructions_[i];
      if (instruction.skippable && nothing_selected) continue;
      GEN_TRY(step(instruction));
    }
    // Taps show all rows, so the way to them is run for all; logits are for those that want them.
    taps_ = true;
    GEN_TRY(run_selected(work_.all_rows_, plan_.end_selected_taps_));
    taps_ = false;
    return run_selected(work_.wanted_rows_, plan_.instructions_.size());
  }

  /// Selected instructions before `end` for `rows`, chunk by chunk.
  Status run_selected(std::span<const int32_t> rows, size_t end) {
    for (size_t first = 0; first < rows.size();) {
      binder_.select(rows.subspan(
          first, std::min(rows.size() - first, static_cast<size_t>(plan_.selected_chunk_))));
      first_selected_row_ = first;
      for (size_t i = plan_.first_selected_; i < end; ++i) {
        const Instruction& instruction = plan_.instructions_[i];
        if (instruction.op == Op::kTap && !taps_) continue;
        GEN_TRY(step(instruction));
      }
      // The next chunk's values go to the same arena.
      GEN_TRY(engine_.finish(stream_));
      first += binder_.selected().size();
    }
    return {};
  }

  /// Tells the tracer that an instruction begins. `args` are null for what goes to the host.
  void trace(const Instruction& instruction, const engine::OpArgs* args) {
    const engine::OpInfo& info = engine::op_info(instruction.op);
    engine::TraceEvent event;
    event.index = static_cast<int32_t>(&instruction - plan_.instructions_.data());
    event.op = info.name;
    event.appends = info.effect == engine::Effect::kCache;
    if (instruction.product >= 0)
      event.detail = plan_.products_[at(instruction.product)].name.c_str();
    event.layer = instruction.layer;
    const Operand& output = instruction.y.present()        ? instruction.y
                            : instruction.packed.present() ? instruction.packed
                                                           : instruction.x;
    event.rows = binder_.rows_of(output);
    event.cols = output.cols;
    if (args != nullptr) {
      const engine::OpCost cost = engine::op_cost(*args);
      event.bytes = cost.bytes;
      event.products = cost.products;
    }
    TracedValues inputs;
    for (const Operand* x : instruction.reads()) inputs.add(binder_, *x);
    TracedValues outputs;
    for (const Operand* y : instruction.writes()) outputs.add(binder_, *y);
    if (event.appends) outputs.add(binder_, instruction.x);
    event.inputs = inputs.all();
    event.outputs = outputs.all();
    if (instruction.attention.n_heads > 0) {
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
      return error(Code::kCancelled, "cancelled");
    }
    if (engine::op_info(instruction.op).effect == engine::Effect::kHost) {
      return traced(instruction, nullptr, [&] { return give(instruction); });
    }
    GEN_TRY(binder_.bind(instruction, &args_));
    return traced(instruction, &args_, [&] {
      const bool given = instruction.op == Op::kEmbed && batch_.embeddings != nullptr;
      return given ? take_embeddings(instruction) : engine_.run(stream_, args_);
    });
  }

  template <typename Work>
  Status traced(const Instruction& instruction, const engine::OpArgs* args, Work&& work) {
    if (batch_.tracer == nullptr) return work();
    trace(instruction, args);
    return engine::run_traced(*batch_.tracer, [&]() -> Status {
      GEN_TRY(work());
      return engine_.finish(stream_);  // a device has only been told so far; a clock should see it
    });
  }

  /// In place of looking tokens up.
  Status take_embeddings(const Instruction& instruction) {
    const engine::MatrixView y = binder_.matrix(instruction.y);
    for (int64_t t = 0; t < y.rows; ++t) {
      GEN_TRY(engine_.upload(stream_, y.data + t * y.stride, batch_.embeddings + t * y.cols,
                             static_cast<size_t>(y.cols) * sizeof(float)));
    }
    return {};
  }

  Status give(const Instruction& instruction) {
    if (instruction.op == Op::kTap) return tap(instruction);
    return download(instruction.x,
                    batch_.logits + first_selected_row_ * static_cast<size_t>(plan_.logits_));
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
      return engine_.download(stream_, out, x.data, row_bytes * static_cast<size_t>(x.rows));
    }
    for (int64_t t = 0; t < x.rows; ++t) {
      GEN_TRY(engine_.download(stream_, out + t * x.cols, x.data + t * x.stride, row_bytes));
    }
    return {};
  }

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  engine::Engine& engine_;
  engine::Stream& stream_;
  Binder binder_;
  engine::OpArgs args_;            // of the instruction being run
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
