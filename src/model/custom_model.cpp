// SPDX-License-Identifier: Apache-2.0
// See custom_model.h.
#include "model/custom_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "graph/batch_check.h"
#include "graph/cache_layers.h"
#include "model/custom_trace.h"
#include "model/logits_check.h"

namespace gen::model {
namespace {

/// The only hidden state that a function gives.
constexpr int32_t kFeaturesTap = 0;

/// Invariant: if it holds a caller's state, the state covers the first length_ positions, or more
/// after a pass that has neither been committed nor dropped. If states cannot be truncated but can
/// be copied, and rows of the pass may be rejected, a copy from before the pass is kept meanwhile.
class CustomState final : public cache::SequenceState,
                          private cache::StateCopies,
                          private cache::StateReading {
 public:
  CustomState(std::shared_ptr<const CustomForward> forward, const CustomStates& can,
              int32_t length) noexcept
      : forward_(std::move(forward)), can_(can), length_(length) {}
  CustomState(const CustomState&) = delete;
  CustomState& operator=(const CustomState&) = delete;
  ~CustomState() override { lose(); }

  /// The owner is created before the caller's state, so that the state is never without one.
  void hold(void* state) noexcept {
    state_ = state;
    held_ = true;
  }
  /// A pass advances the state.
  Result<void*> begin(const cache::StatePlan& plan) {
    if (plan.keep == cache::Keep::kSome && !can_.truncate) {
      GEN_ASSIGN(copy_, forward_->clone_state(state_));
      copied_ = true;
    }
    ahead_ = true;
    return state_;
  }

  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] bool keeps_some() const noexcept override { return can_.truncate || can_.clone; }
  [[nodiscard]] bool lost() const noexcept override { return !held_; }
  [[nodiscard]] cache::StateCopies* copies() noexcept override {
    return can_.clone && held_ ? this : nullptr;
  }

  [[nodiscard]] cache::StateReading* reading() noexcept override { return this; }

  using SequenceState::plan;
  [[nodiscard]] Result<cache::StatePlan> plan(int32_t n, cache::Keep keep,
                                              int32_t certain) override {
    if (!held_) {
      return error(Code::kState, "the sequence's state was lost when it could not go back");
    }
    if (keep == cache::Keep::kSome && !keeps_some()) return cannot_go_back(length_);
    return cache::StatePlan{length_, n, keep, certain};
  }

  void commit(const cache::StatePlan& plan, cache::Kept kept) noexcept override {
    if (kept.n < plan.count) {
      undo(plan.start + kept.n);
    } else {
      length_ = plan.start + plan.count;
      ahead_ = false;
      free_copy();
    }
  }
  void drop(const cache::StatePlan& plan) noexcept override { undo(plan.start); }

  Result<int32_t> rewind(int32_t n) override {
    if (!held_) return error(Code::kState, "the state is lost");
    if (n >= length_) return length_;
    GEN_TRY(take_back(n));
    return length_;
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<cache::SequenceState>> fork() override {
    auto copy = std::make_unique<CustomState>(forward_, can_, length_);
    GEN_ASSIGN(void* const state, forward_->clone_state(state_));
    copy->hold(state);
    return std::unique_ptr<cache::SequenceState>(std::move(copy));
  }

  [[nodiscard]] std::vector<cache::StateFacts> facts() const override {
    std::vector<cache::StateFacts> all(static_cast<size_t>(can_.layers));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {"custom", static_cast<int32_t>(i), {}};
    return all;
  }
  [[nodiscard]] Result<std::array<int32_t, 3>> dims(int32_t layer) const override {
    std::array<int32_t, 3> told = {};
    GEN_TRY(forward_->read_state(state_, layer, nullptr, &told));
    size_t bytes = sizeof(float);
    for (const int32_t n : told) {
      if (n >= 0 && checked_mul(bytes, static_cast<size_t>(n), &bytes) && bytes <= PTRDIFF_MAX) {
        continue;
      }
      return error(Code::kModel, "the model's state_get_layer gave a layer of [%d, %d, %d]",
                   told[0], told[1], told[2]);
    }
    return told;
  }
  [[nodiscard]] bool settled() const noexcept override { return true; }
  Status read(int32_t layer, std::span<float> to) const override {
    std::array<int32_t, 3> told = {};
    return forward_->read_state(state_, layer, to.data(), &told);
  }

  static Status cannot_go_back(int32_t n) {
    return error(Code::kUnsupported, "the model has a state that cannot go back to %d tokens", n);
  }

  /// Truncates to `n` positions, or restores the copy from before the pass if there is one. Also
  /// after a failed pass, which leaves the state at an unknown position.
  Status take_back(int32_t n) {
    if (copied_) {
      std::swap(state_, copy_);
      free_copy();
      ahead_ = false;
      return {};
    }
    Status status;
    try {
      status = can_.truncate ? forward_->truncate_state(state_, n) : cannot_go_back(n);
    } catch (...) {
      lose();
      throw;
    }
    if (!status.ok()) {
      lose();
      return status;
    }
    length_ = n;
    ahead_ = false;
    return {};
  }
  void undo(int32_t n) noexcept {
    if (!held_ || !ahead_) return;
    try {
      static_cast<void>(take_back(n));
    } catch (...) {  // the state is lost; its next use reports that
    }
  }

  void lose() noexcept {
    free_copy();
    if (!held_) return;
    held_ = false;
    forward_->free_state(state_);
  }
  void free_copy() noexcept {
    if (!std::exchange(copied_, false)) return;
    forward_->free_state(copy_);
  }

  std::shared_ptr<const CustomForward> forward_;
  CustomStates can_;
  void* state_ = nullptr;
  void* copy_ = nullptr;
  bool held_ = false;
  bool copied_ = false;
  bool ahead_ = false;
  int32_t length_;
};

CustomState* state_of(const graph::BatchSequence& sequence) {
  return static_cast<CustomState*>(sequence.state);
}

int32_t first_position(const graph::Batch& batch, const graph::BatchSequence& sequence) {
  return batch.positions[static_cast<size_t>(sequence.first_row)];
}

}  // namespace

CustomModel::CustomModel(std::shared_ptr<const CustomForward> forward, ModelTraits traits,
                         const CustomStates& states, CustomLayers layers, StartEngine start)
    : forward_(std::move(forward)),
      traits_(std::move(traits)),
      states_(states),
      layers_(std::move(layers)),
      start_engine_(std::move(start)) {
  attention_.n_heads = traits_.num_heads;
  attention_.n_kv_heads = traits_.num_kv_heads;
  attention_.k_dim = attention_.v_dim = traits_.head_dim;
  shapes_.assign(static_cast<size_t>(layers_.count), graph::cache_layer(attention_, nullptr));
}

Result<std::shared_ptr<const CustomModel>> CustomModel::create(
    std::shared_ptr<const CustomForward> forward, ModelTraits traits, const CustomStates& states,
    CustomLayers layers, StartEngine start) {
  if (traits.vocab_size < 1 || traits.max_seq_len < 1) {
    return error(Code::kInvalidArgument,
                 "a vocabulary of %d tokens and a context of %d: both must be 1 or more",
                 traits.vocab_size, traits.max_seq_len);
  }
  if (traits.eos < -1 || traits.eos >= traits.vocab_size) {
    return error(Code::kInvalidArgument, "eos %d outside vocabulary of %d", traits.eos,
                 traits.vocab_size);
  }
  const bool grouped = traits.num_heads >= 1 && traits.num_kv_heads >= 1 &&
                       traits.num_heads % traits.num_kv_heads == 0 && traits.head_dim >= 1;
  if (layers.count > 0 && !grouped) {
    return error(Code::kInvalidArgument,
                 "%d layers of %d heads over %d key and value heads of %d elements", layers.count,
                 traits.num_heads, traits.num_kv_heads, traits.head_dim);
  }
  traits.can_shift = layers.count == 0;
  traits.can_branch = false;
  traits.can_truncate = !states.used || states.truncate;
  traits.can_keep_some = traits.can_truncate || states.clone;
  if (!traits.can_truncate) traits.max_batch_sequences = 1;
  return std::shared_ptr<const CustomModel>(new CustomModel(
      std::move(forward), std::move(traits), states, std::move(layers), std::move(start)));
}

Result<std::unique_ptr<cache::SequenceState>> CustomModel::new_sequence_state() const {
  if (!states_.used) return std::unique_ptr<cache::SequenceState>();
  auto made = std::make_unique<CustomState>(forward_, states_, 0);
  GEN_ASSIGN(void* const state, forward_->new_state());
  made->hold(state);
  return std::unique_ptr<cache::SequenceState>(std::move(made));
}

Status CustomModel::check_state(const graph::Batch& batch, size_t index) const {
  const graph::BatchSequence& sequence = batch.sequences[index];
  const CustomState* const state = state_of(sequence);
  if (state == nullptr) {
    return {Code::kUnsupported, "the model has a state of its own: it runs in sessions only"};
  }
  const int32_t first = first_position(batch, sequence);
  if (state->length() == first) return {};
  return error(Code::kInternal, "rows at position %d for a state after %d", first, state->length());
}

// Heads ask for the only state there is, callers for what leaves the last layer.
bool CustomModel::is_features(const graph::Tap& tap) const noexcept {
  return tap.out != nullptr && (tap.layer == kFeaturesTap || tap.layer == traits_.num_layers);
}

Status CustomModel::check(const graph::Batch& batch) const {
  if (!batch.embeddings.empty() || !batch.parents.empty()) {
    return {Code::kUnsupported, "the model's forward function takes tokens, one after another"};
  }
  graph::BatchLimits limits;
  limits.vocab = limits.logits = traits_.vocab_size;
  limits.hidden = traits_.hidden;
  limits.max_rows = traits_.max_batch_rows;
  limits.max_seq_len = traits_.max_seq_len;
  limits.layers = shapes_;
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  limits.n_taps = traits_.hidden > 0 ? std::min(traits_.num_layers, kMost - 1) + 1 : 0;
  if (batch.taps.size() > 1 || (batch.taps.size() == 1 && !is_features(batch.taps[0]))) {
    return error(Code::kUnsupported,
                 "the model's forward function gives the features of layer %d alone",
                 traits_.num_layers);
  }
  GEN_TRY(graph::check_batch(batch, limits));
  if (!states_.used) return {};
  for (size_t i = 0; i < batch.sequences.size(); ++i) GEN_TRY(check_state(batch, i));
  return {};
}

// Calls the caller's function and checks that it has done all of its work.
Status CustomModel::run(const graph::Batch& batch) const {
  const auto vocab = static_cast<size_t>(traits_.vocab_size);
  std::vector<void*> states(batch.sequences.size(), nullptr);
  if (states_.used) {
    for (size_t i = 0; i < states.size(); ++i) {
      const graph::BatchSequence& sequence = batch.sequences[i];
      GEN_ASSIGN(states[i], state_of(sequence)->begin(sequence.state_plan));
    }
  }
  // A row that the function did not write must not look valid.
  constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(batch.logits, batch.wanting(graph::kWantsLogits) * vocab, kUnwritten);
  float* const features = batch.taps.empty() ? nullptr : batch.taps[0].out;
  if (features != nullptr) {
    std::fill_n(features, batch.tokens.size() * static_cast<size_t>(traits_.hidden), kUnwritten);
  }
  if (batch.tracer != nullptr) batch.tracer->enter();
  if (layers_.count == 0) {
    GEN_TRY(forward_->forward(batch, states, features, nullptr));
  } else {
    CustomAttention attention(*layers_.engine, batch, attention_, layers_.count);
    GEN_TRY(forward_->forward(batch, states, features, &attention));
    GEN_TRY(attention.check_all_run());
  }
  if (batch.during.call != nullptr) GEN_TRY(batch.during.call(batch.during.context));
  GEN_TRY(check_logits(batch, vocab));
  if (batch.tracer != nullptr) {
    trace_forward(batch, attention_, layers_.count, traits_.vocab_size, traits_.hidden);
  }
  return {};
}

Status CustomModel::forward(const graph::Batch& batch) const {
  GEN_TRY(check(batch));
  if (batch.cancel != nullptr && batch.cancel->raised()) {
    return {Code::kCancelled, "cancelled before the model's forward function"};
  }
  return run(batch);
}

Result<HeadTarget> CustomModel::head_target() const {
  if (traits_.hidden == 0) {
    return error(Code::kUnsupported, "model %.40s has no features for heads: its hidden size is 0",
                 traits_.architecture.c_str());
  }
  HeadTarget target;
  target.engine = layers_.engine;
  if (target.engine == nullptr) {
    if (start_engine_ == nullptr) {
      return error(Code::kUnsupported, "model %.40s has no engine for heads",
                   traits_.architecture.c_str());
    }
    const std::lock_guard lock(mutex_);
    target.engine = started_.lock();
    if (target.engine == nullptr) {
      GEN_ASSIGN(target.engine, start_engine_());
      started_ = target.engine;
    }
  }
  target.vocab_size = traits_.vocab_size;
  target.hidden = traits_.hidden;
  target.num_layers = traits_.num_layers;
  target.only_tap = kFeaturesTap;
  target.max_seq_len = traits_.max_seq_len;
  target.max_batch_rows = traits_.max_batch_rows;
  return target;
}

Result<size_t> CustomModel::memory(std::string_view key) const {
  for (const std::string_view known : {"weights", "workspace", "mapped", "stream"}) {
    if (key == known) return size_t{0};
  }
  return error(Code::kInvalidArgument,
               "no memory figure \"%.*s\" (weights, workspace, mapped, file, stream)",
               static_cast<int>(std::min<size_t>(key.size(), 64)), key.data());
}

}  // namespace gen::model
