// SPDX-License-Identifier: Apache-2.0
// See model_drafter.h.
#include "generate/draft/model_drafter.h"

#include <algorithm>
#include <utility>

#include "cache/sequence/cache_format.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "cache/state/sequence_state.h"

namespace gen::generate {

struct ModelDrafter::State final : DraftState {
  explicit State(size_t capacity) { tokens.reserve(capacity); }
  // A state that cannot be copied is made anew when it is needed.
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override {
    auto copy = std::make_unique<State>(tokens.capacity());
    if (cache == nullptr) return copy;
    std::unique_ptr<cache::SequenceState> forked_own;
    if (own != nullptr) {
      cache::StateCopies* const copies = own->copies();
      if (copies == nullptr) return copy;
      Result<std::unique_ptr<cache::SequenceState>> forked = copies->fork();
      if (!forked.ok()) return copy;
      forked_own = std::move(forked).value();
    }
    Result<std::unique_ptr<cache::KvCache>> forked = cache->fork();
    if (!forked.ok()) return copy;
    copy->tokens = tokens;
    copy->cache = std::move(forked).value();
    copy->own = std::move(forked_own);
    return copy;
  }
  void forget() noexcept {
    cache = nullptr;
    own = nullptr;
    tokens.clear();
  }

  std::unique_ptr<cache::KvCache> cache;      // created on first use
  std::unique_ptr<cache::SequenceState> own;  // the model's sequence state, if it has one
  std::vector<int32_t> tokens;                // tokens that cache and state hold
  int32_t resting = 0;                        // proposals for which it is still skipped
};

/// Takes back the tokens that matchers accepted, however a proposal ends.
class ModelDrafter::GiveBack {
 public:
  explicit GiveBack(std::vector<Running>* running) noexcept : running_(*running) {}
  ~GiveBack() {
    for (const Running& each : running_) give_back(each.of);
    running_.clear();
  }
  GiveBack(const GiveBack&) = delete;
  GiveBack& operator=(const GiveBack&) = delete;

 private:
  std::vector<Running>& running_;
};

/// Restores the states if a pass fails or throws.
class ModelDrafter::DropStates {
 public:
  explicit DropStates(std::span<const graph::BatchSequence> sequences) noexcept
      : sequences_(sequences) {}
  ~DropStates() {
    if (kept_) return;
    for (const graph::BatchSequence& sequence : sequences_) {
      if (sequence.state != nullptr) sequence.state->drop(sequence.state_plan);
    }
  }
  DropStates(const DropStates&) = delete;
  DropStates& operator=(const DropStates&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  std::span<const graph::BatchSequence> sequences_;
  bool kept_ = false;
};

ModelDrafter::ModelDrafter(std::shared_ptr<const model::Model> model, Options options)
    : model_(std::move(model)),
      options_(std::move(options)),
      guesser_(options_.vocab),
      capacity_(std::min(model_->traits().max_seq_len, options_.context)) {}

Status check_draft_model(const model::Model& model) {
  GEN_ASSIGN(const auto state, model.new_sequence_state());
  const bool few_points = state != nullptr && state->snapshots() != nullptr;
  if (!few_points && model.traits().can_truncate) return {};
  return error(Code::kUnsupported,
               "the draft model %.40s has a state that cannot go back to what was accepted",
               model.traits().architecture.c_str());
}

Result<std::shared_ptr<ModelDrafter>> ModelDrafter::create(
    std::shared_ptr<const model::Model> model, Options options) {
  GEN_TRY(check_draft_model(*model));
  options.most = std::clamp(options.most, 1, kMaxDraftRows - 1);
  const int32_t max_rows = model->traits().max_batch_rows;
  options.prompt_rows = std::clamp(options.prompt_rows, std::min(max_rows, 2), max_rows);
  if (!options.cache_factory) {
    options.cache_factory = [kv_dtype = options.kv_dtype,
                             memories = model::memories_of_layers(*model, *options.memory)](
                                std::span<const cache::LayerShape> shapes, int32_t capacity) {
      return cache::make_in_memories(
          shapes, memories,
          [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
            return cache::make_cache(kv_dtype, layers, capacity, memory);
          });
    };
    GEN_ASSIGN(const auto format, cache::parse_cache_format(options.kv_dtype));
    GEN_TRY(cache::check_layers(format, model->layer_shapes()));
  }
  return std::shared_ptr<ModelDrafter>(new ModelDrafter(std::move(model), std::move(options)));
}

std::unique_ptr<DraftState> ModelDrafter::begin() {
  return std::make_unique<State>(static_cast<size_t>(capacity_));
}

void ModelDrafter::propose(std::span<DraftJob* const> jobs) {
  const auto most = static_cast<size_t>(
      std::min(model_->traits().max_batch_sequences, model_->traits().max_batch_rows));
  for (size_t first = 0; first < jobs.size(); first += most) {
    propose_group(jobs.subspan(first, std::min(most, jobs.size() - first)));
  }
}

// The first pass evaluates what the caches lack; each further pass evaluates the token that the
// previous one gave.
void ModelDrafter::propose_group(std::span<DraftJob* const> jobs) {
  const GiveBack give_back(&running_);
  begin_pass();
  int32_t room = std::max(options_.prompt_rows, static_cast<int32_t>(jobs.size()));
  reserve(jobs.size(), static_cast<size_t>(room));
  auto waiting = static_cast<int32_t>(jobs.size());  // each of these needs one row in any case
  for (DraftJob* const job : jobs) {
    auto* const state = static_cast<State*>(job->state);
    --waiting;
    running_.push_back({.of = {.job = job}, .state = state});
    Running& running = running_.back();
    running.of.ends = true;
    running.of.logits = Guesser::needs_logits(*job) || model_->traits().max_best == 0;
    if (job->tokens.size() > static_cast<size_t>(capacity_)) continue;
    if (state->resting > 0) {
      --state->resting;
      continue;
    }
    if (!catch_up(state, job->tokens)) {
      rest(&running);
      continue;
    }
    const auto missing = job->tokens.subspan(state->tokens.size());
    // A token outside the draft model's vocabulary would fail the pass and with it the drafts of
    // all jobs.
    const auto unknown = [this](int32_t token) { return token >= model_->traits().vocab_size; };
    if (std::any_of(missing.begin(), missing.end(), unknown)) {
      rest(&running);
      continue;
    }
    const auto rows = std::min(
        {static_cast<int32_t>(missing.size()), room - waiting, state->cache->plan_limit()});
    const bool whole = static_cast<size_t>(rows) == missing.size();
    if (!add_rows(&running, missing.first(static_cast<size_t>(rows)), whole)) {
      rest(&running);
      continue;
    }
    running.of.ends = !whole;
    room -= rows;
  }
  while (!sequences_.empty()) {
    if (!run_pass()) {
      // Includes jobs whose text the pass was to catch up with.
      for (const Running& running : running_) {
        const auto ran = std::find(in_pass_.begin(), in_pass_.end(), running.state);
        if (ran != in_pass_.end()) ++running.of.job->failures;
      }
      return;
    }
    for (Running& running : running_) {
      if (!running.of.ends) guess(&running);
    }
    begin_pass();
    for (Running& running : running_) {
      if (running.of.ends) continue;
      const int32_t token = running.of.job->tree.tokens().back();
      if (!add_rows(&running, {&token, 1}, true)) {
        running.of.ends = true;
        ++running.of.job->failures;
      }
    }
  }
}

void ModelDrafter::rest(Running* running) noexcept {
  running->state->resting = kRestAfterFailure;
  ++running->of.job->failures;
}

// Keeps the common prefix of cache and text, without the last token of the text.
bool ModelDrafter::catch_up(State* state, std::span<const int32_t> text) {
  if (state->own != nullptr && state->own->lost()) state->forget();
  if (state->cache == nullptr) {
    auto own = model_->new_sequence_state();
    if (!own.ok()) return false;
    auto made = options_.cache_factory(model_->layer_shapes(), capacity_);
    if (!made.ok()) return false;
    state->own = std::move(own).value();
    state->cache = std::move(made).value();
    state->tokens.clear();
  }
  const auto held = std::span<const int32_t>(state->tokens);
  const size_t most = std::min(held.size(), text.size() - 1);
  const auto at =
      std::mismatch(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(most), text.begin());
  const auto same = static_cast<size_t>(at.first - held.begin());
  if (!cut(state, static_cast<int32_t>(same)).ok()) {
    state->forget();
    return false;
  }
  state->tokens.resize(static_cast<size_t>(state->cache->length()));
  return true;
}

// A cache may drop more than asked; the state is then cut to the same length.
Status ModelDrafter::cut(State* state, int32_t n) {
  GEN_TRY(state->cache->truncate(n));
  if (state->own == nullptr) return {};
  GEN_ASSIGN(const int32_t left, state->own->rewind(state->cache->length()));
  return state->cache->truncate(left);
}

// Reserves for the largest possible pass.
void ModelDrafter::reserve(size_t sequences, size_t rows) {
  tokens_.reserve(rows);
  positions_.reserve(rows);
  wants_.reserve(rows);
  running_.reserve(sequences);
  sequences_.reserve(sequences);
  in_pass_.reserve(sequences);
}

void ModelDrafter::begin_pass() noexcept {
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  sequences_.clear();
  in_pass_.clear();
  n_logits_ = 0;
  n_best_ = 0;
}

// False if the rows do not fit. With `wants` the last row returns the next token.
bool ModelDrafter::add_rows(Running* running, std::span<const int32_t> tokens, bool wants) {
  State& state = *running->state;
  Result<cache::CachePlan> plan = state.cache->plan(static_cast<int32_t>(tokens.size()));
  if (!plan.ok()) return false;
  graph::BatchSequence sequence;
  if (state.own != nullptr) {
    const auto own = state.own->plan(plan->count, cache::Keep::kAll);
    if (!own.ok()) return false;
    sequence.state = state.own.get();
    sequence.state_plan = own.value();
  }
  sequence.cache = state.cache.get();
  sequence.plan = *plan;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = static_cast<int32_t>(tokens.size());
  in_pass_.push_back(&state);
  sequences_.push_back(sequence);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto first = static_cast<int32_t>(state.tokens.size());
  for (int32_t i = 0; i < sequence.n_rows; ++i) positions_.push_back(first + i);
  wants_.resize(tokens_.size(), graph::kWantsNothing);
  running->wants = wants;
  if (!wants) return true;
  wants_.back() = running->of.logits ? graph::kWantsLogits : graph::kWantsBest;
  running->row = running->of.logits ? n_logits_++ : n_best_++;
  return true;
}

// A sequence that fails fails the whole pass: drafts do not justify running it again.
bool ModelDrafter::run_pass() {
  DropStates drop(sequences_);
  logits_.resize(static_cast<size_t>(n_logits_) * static_cast<size_t>(model_->traits().vocab_size));
  best_tokens_.resize(static_cast<size_t>(n_best_));
  best_logits_.resize(static_cast<size_t>(n_best_));
  graph::Batch batch;
  batch.tokens = tokens_;
  batch.positions = positions_;
  batch.wants = wants_;
  batch.sequences = sequences_;
  batch.logits = logits_.data();
  batch.logits_rows = static_cast<size_t>(n_logits_);
  batch.best.tokens = best_tokens_.data();
  batch.best.logits = best_logits_.data();
  batch.best.rows = static_cast<size_t>(n_best_);
  if (!model_->forward(batch).ok()) return false;
  drop.keep();
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const graph::BatchSequence& sequence = sequences_[i];
    sequence.cache->commit(sequence.plan);
    if (sequence.state != nullptr) {
      sequence.state->commit(sequence.state_plan, {sequence.state_plan.count});
    }
    const auto rows = std::span<const int32_t>(tokens_).subspan(
        static_cast<size_t>(sequence.first_row), static_cast<size_t>(sequence.n_rows));
    in_pass_[i]->tokens.insert(in_pass_[i]->tokens.end(), rows.begin(), rows.end());
  }
  return true;
}

void ModelDrafter::guess(Running* running) {
  DraftJob& job = *running->of.job;
  const auto row = static_cast<size_t>(running->row);
  if (running->of.logits) {
    const auto width = static_cast<size_t>(model_->traits().vocab_size);
    guesser_.add(&running->of, std::span(logits_).subspan(row * width, width));
  } else {
    guesser_.add_best(&running->of, best_tokens_[row]);
  }
  if (running->of.ends) return;
  running->of.ends = job.tree.rows() > std::min(job.most, options_.most) ||
                     running->state->tokens.size() >= static_cast<size_t>(capacity_);
}

}  // namespace gen::generate
