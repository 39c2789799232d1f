// SPDX-License-Identifier: Apache-2.0
// Walks a plan's instructions for one batch: turns operands into pointers (arena + offset * rows),
// asks caches for their views, and calls the engine. Instructions over selected rows run last, in
// chunks, so that logits of many rows need no arena of their size. See execution_plan.h.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/execution_plan.h"
#include "graph/trace_attention.h"

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
        stream_(*workspace.stream_) {}

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
    rows_ = batch_.rows();
    work_.wanted_rows_.clear();
    for (size_t i = 0; i < batch_.wants_logits.size(); ++i) {
      if (batch_.wants_logits[i] != 0) work_.wanted_rows_.push_back(static_cast<int32_t>(i));
    }
    work_.all_rows_.clear();
    if (wants_selected_tap()) {
      work_.all_rows_.resize(at(static_cast<int32_t>(rows_)));
      std::iota(work_.all_rows_.begin(), work_.all_rows_.end(), 0);
    }
    const size_t most = std::max(work_.wanted_rows_.size(), work_.all_rows_.size());
    const auto chunk = std::min(plan_.selected_chunk_, static_cast<int64_t>(most));
    GEN_TRY(work_.reserve(plan_.row_bytes_ * static_cast<size_t>(rows_),
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
      selected_ = rows.subspan(
          first, std::min(rows.size() - first, static_cast<size_t>(plan_.selected_chunk_)));
      first_selected_row_ = first;
      for (size_t i = plan_.first_selected_; i < end; ++i) {
        const Instruction& instruction = plan_.instructions_[i];
        if (instruction.op == Op::kTap && !taps_) continue;
        GEN_TRY(step(instruction));
      }
      // The next chunk's values go to the same arena.
      GEN_TRY(engine_.finish(stream_));
      first += selected_.size();
    }
    return {};
  }

  [[nodiscard]] const ProgramValue& value(const Operand& operand) const {
    return plan_.values_[at(operand.value)];
  }
  [[nodiscard]] int64_t rows_of(const Operand& operand) const {
    return value(operand).selected ? static_cast<int64_t>(selected_.size()) : rows_;
  }
  [[nodiscard]] std::byte* memory(const Operand& operand) const {
    const ProgramValue& of = value(operand);
    std::byte* arena = of.selected ? work_.selected_.data() : work_.rows_.data();
    return arena + of.offset * static_cast<size_t>(rows_of(operand));
  }
  [[nodiscard]] engine::MatrixView matrix(const Operand& operand) const {
    if (!operand.present()) return {};
    return {reinterpret_cast<float*>(memory(operand)) + operand.first, rows_of(operand),
            operand.cols, static_cast<int64_t>(value(operand).row_bytes / sizeof(float))};
  }
  [[nodiscard]] engine::ConstMatrixView const_matrix(const Operand& operand) const {
    const engine::MatrixView view = matrix(operand);
    return {view.data, view.rows, view.cols, view.stride};
  }
  [[nodiscard]] engine::Activations packed(const Operand& operand) const {
    if (!operand.present()) return {};
    return {memory(operand), value(operand).forms, rows_of(operand), operand.cols};
  }
  [[nodiscard]] const float* vector(int32_t index) const {
    return index < 0 ? nullptr : plan_.vectors_[at(index)];
  }

  void trace(const Instruction& instruction) {
    engine::TraceEvent event;
    event.index = static_cast<int32_t>(&instruction - plan_.instructions_.data());
    event.op = op_name(instruction.op);
    if (instruction.product >= 0)
      event.detail = plan_.products_[at(instruction.product)].name.c_str();
    event.layer = instruction.layer;
    const Operand& output = instruction.y.present()        ? instruction.y
                            : instruction.packed.present() ? instruction.packed
                                                           : instruction.x;
    event.rows = rows_of(output);
    event.cols = output.cols;
    if (instruction.op == Op::kLinear) {
      const ExecutionPlan::Prepared& product = plan_.products_[at(instruction.product)];
      event.bytes = static_cast<int64_t>(product.weight->stream_bytes());
      event.products = event.rows * product.products;
    }
    if (instruction.op == Op::kAttention) {
      count_attention(instruction.attention, work_.sequences_, &event);
    }
    TracedValues inputs;
    for (const Operand* x :
         {&instruction.x, &instruction.x2, &instruction.x3, &instruction.angles}) {
      inputs.add(*this, *x);
    }
    TracedValues outputs;
    outputs.add(*this, instruction.y);
    outputs.add(*this, instruction.packed);
    if (instruction.op == Op::kRopeAppend) outputs.add(*this, instruction.x);
    event.inputs = inputs.all();
    event.outputs = outputs.all();
    if (instruction.op == Op::kRopeAppend || instruction.op == Op::kAttention) {
      list_caches(instruction.attention, batch_.sequences, &traced_caches_);
      event.caches = traced_caches_;
    }
    batch_.tracer->record(event);
  }

  /// Values of an instruction, each once.
  struct TracedValues {
    void add(const PlanRunner& runner, const Operand& operand) {
      if (!operand.present()) return;
      for (size_t i = 0; i < n; ++i) {
        if (list[i].value == operand.value) return;
      }
      list[n++] = {operand.value, runner.rows_of(operand), runner.value(operand).cols};
    }
    [[nodiscard]] std::span<const engine::TraceValue> all() const { return {list, n}; }

    engine::TraceValue list[4];
    size_t n = 0;
  };

  Status step(const Instruction& instruction) {
    if (batch_.cancel != nullptr && batch_.cancel->raised()) {
      return error(Code::kCancelled, "cancelled");
    }
    if (batch_.tracer == nullptr) return execute(instruction);
    trace(instruction);
    return engine::run_traced(*batch_.tracer, [&]() -> Status {
      GEN_TRY(execute(instruction));
      return engine_.finish(stream_);  // a device has only been told so far; a clock should see it
    });
  }

  Status execute(const Instruction& instruction) {
    switch (instruction.op) {
      case Op::kRopeAngles:
        return engine_.rope_angles(stream_, {&plan_.tables_[at(instruction.attention.rope)],
                                             batch_.positions, matrix(instruction.y)});
      case Op::kEmbed:
        return embed(instruction);
      case Op::kRmsNorm:
        return engine_.rms_norm(
            stream_, {const_matrix(instruction.x), vector(instruction.vector), instruction.factor,
                      matrix(instruction.y), packed(instruction.packed)});
      case Op::kPack:
        return engine_.pack(stream_, {const_matrix(instruction.x), packed(instruction.packed)});
      case Op::kLinear:
        return linear(instruction);
      case Op::kSwiGlu:
        return engine_.swiglu(stream_, {const_matrix(instruction.x), const_matrix(instruction.x2),
                                        matrix(instruction.y)});
      case Op::kAdd:
        return engine_.add(stream_, {const_matrix(instruction.x), const_matrix(instruction.x2),
                                     matrix(instruction.y)});
      case Op::kRopeAppend:
        return rope_append(instruction);
      case Op::kAttention:
        return attention(instruction);
      case Op::kTap:
        return tap(instruction);
      case Op::kSelectRows:
        return engine_.select_rows(stream_,
                                   {const_matrix(instruction.x), selected_, matrix(instruction.y)});
      case Op::kLogits:
        return download(instruction.x,
                        batch_.logits + first_selected_row_ * static_cast<size_t>(plan_.logits_));
    }
    return error(Code::kInternal, "instruction %d", static_cast<int>(instruction.op));
  }

  Status embed(const Instruction& instruction) {
    const engine::MatrixView y = matrix(instruction.y);
    if (batch_.embeddings == nullptr) {
      return engine_.embed(stream_, {plan_.products_[at(instruction.product)].weight.get(),
                                     batch_.tokens, instruction.factor, y});
    }
    for (int64_t t = 0; t < y.rows; ++t) {
      GEN_TRY(engine_.upload(stream_, y.data + t * y.stride, batch_.embeddings + t * y.cols,
                             static_cast<size_t>(y.cols) * sizeof(float)));
    }
    return {};
  }

  Status linear(const Instruction& instruction) {
    const ExecutionPlan::Prepared& product = plan_.products_[at(instruction.product)];
    engine::LinearArgs args;
    args.weight = product.weight.get();
    args.x = packed(instruction.x);
    args.bias = vector(instruction.vector);
    args.residual = const_matrix(instruction.x2);
    args.y = matrix(instruction.y);
    GEN_TRY(engine_.linear(stream_, args));
    for (const SiteSlice& slice : product.sites) adapter_add(slice, args);
    return {};
  }

  /// Where adapters will add to a product's slice: nothing, as no adapter can be loaded yet.
  void adapter_add(const SiteSlice&, const engine::LinearArgs&) const {}

  Status rope_append(const Instruction& instruction) {
    for (size_t s = 0; s < batch_.sequences.size(); ++s) {
      const BatchSequence& sequence = batch_.sequences[s];
      engine::SequenceRows& rows = work_.sequences_[s];
      rows.first_row = sequence.first_row;
      rows.n_rows = sequence.n_rows;
      rows.first_entry = sequence.plan.start;
      GEN_ASSIGN(rows.view, sequence.cache->view(instruction.layer, sequence.plan));
    }
    const AttentionSpec& spec = instruction.attention;
    engine::RopeAppendArgs args;
    args.q = matrix(instruction.x);
    args.k = const_matrix(instruction.x2);
    args.v = const_matrix(instruction.x3);
    args.n_heads = spec.n_heads;
    args.n_kv_heads = spec.n_kv_heads;
    args.k_dim = spec.k_dim;
    args.v_dim = spec.v_dim;
    args.q_norm = vector(instruction.vector);
    args.k_norm = vector(instruction.vector2);
    args.norm_eps = instruction.factor;
    if (spec.rope >= 0) {
      args.rope = plan_.tables_[at(spec.rope)].kind;
      args.rope_dims = plan_.tables_[at(spec.rope)].n_dims;
      args.cs = const_matrix(instruction.angles);
    }
    args.sequences = work_.sequences_;
    return engine_.rope_append(stream_, args);
  }

  Status attention(const Instruction& instruction) {
    const AttentionSpec& spec = instruction.attention;
    engine::AttentionArgs args;
    args.q = const_matrix(instruction.x);
    args.out = matrix(instruction.y);
    args.packed = packed(instruction.packed);
    args.n_heads = spec.n_heads;
    args.n_kv_heads = spec.n_kv_heads;
    args.k_dim = spec.k_dim;
    args.v_dim = spec.v_dim;
    args.scale = spec.scale;
    args.soft_cap = spec.soft_cap;
    args.sequences = work_.sequences_;
    return engine_.attention(stream_, args);
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
    const engine::ConstMatrixView x = const_matrix(operand);
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
  int64_t rows_ = 0;                   // T
  std::span<const int32_t> selected_;  // of this chunk
  size_t first_selected_row_ = 0;      // of this chunk, among those it was cut from
  bool taps_ = false;                  // selected taps are being run
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
