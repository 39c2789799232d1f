// SPDX-License-Identifier: Apache-2.0
// See head_drafter.h.
#include "generate/draft/head_drafter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cache/sequence/cache_format.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "generate/draft/head_state.h"

namespace gen::generate {
namespace {

/// Rows of a text that may wait: few enough for their memory, many enough for a pass that costs
/// little more than one over a single row.
constexpr size_t kMostWaiting = 32;

}  // namespace

/// Takes back what drafts have added to matchers and caches, however a proposal ends.
class HeadDrafter::EndDraft {
 public:
  explicit EndDraft(std::vector<Running>* running) noexcept : running_(*running) {}
  ~EndDraft() {
    for (const Running& each : running_) {
      if (each.of.job != nullptr) give_back(each.of);
      HeadState& state = *each.state;
      for (size_t i = 0; i < state.filled.size(); ++i) {
        if (!state.cut_cache(i)) state.begin_at(state.base);
      }
    }
    running_.clear();
  }
  EndDraft(const EndDraft&) = delete;
  EndDraft& operator=(const EndDraft&) = delete;

 private:
  std::vector<Running>& running_;
};

HeadDrafter::HeadDrafter(std::shared_ptr<const model::DraftHead> head, Options options)
    : head_(std::move(head)),
      options_(std::move(options)),
      guesser_(options_.vocab),
      width_(head_->taps.size() * static_cast<size_t>(head_->width)),
      own_width_(static_cast<size_t>(head_->own_width)),
      heads_(1 + head_->later.size()),
      caches_(!head_->first->layer_shapes().empty()),
      reads_(head_->reads_cache),
      by_logits_(head_->first->traits().max_best == 0) {}

Result<std::shared_ptr<HeadDrafter>> HeadDrafter::create(
    std::shared_ptr<const model::DraftHead> head, Options options) {
  options.most = std::clamp(options.most, 1, kMaxDraftRows - 1);
  if (!head->later.empty()) {
    options.most = std::min(options.most, static_cast<int32_t>(1 + head->later.size()));
  }
  options.context = std::min(options.context, head->first->traits().max_seq_len);
  if (!options.cache_factory) {
    options.cache_factory = [kv_dtype = options.kv_dtype,
                             memories = model::memories_of_layers(*head->first, *options.memory)](
                                std::span<const cache::LayerShape> shapes, int32_t capacity) {
      return cache::make_in_memories(
          shapes, memories,
          [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
            return cache::make_cache(kv_dtype, layers, capacity, memory);
          });
    };
    GEN_ASSIGN(const auto format, cache::parse_cache_format(options.kv_dtype));
    GEN_TRY(cache::check_layers(format, head->first->layer_shapes()));
  }
  return std::shared_ptr<HeadDrafter>(new HeadDrafter(std::move(head), std::move(options)));
}

std::unique_ptr<DraftState> HeadDrafter::begin() {
  return std::make_unique<HeadState>(width_, heads_, head_->fingerprint);
}

// A state of another head, or of another form of caches, is of no use.
Result<std::unique_ptr<DraftState>> HeadDrafter::restore(std::span<const int32_t> text,
                                                         const SavedHead& saved) {
  std::unique_ptr<DraftState> none;
  const bool same = saved.fingerprint != 0 && saved.fingerprint == head_->fingerprint &&
                    static_cast<size_t>(saved.width) == width_ && saved.heads.size() == heads_;
  if (!same) return none;
  auto state = std::make_unique<HeadState>(width_, heads_, head_->fingerprint);
  for (size_t i = 0; i < heads_; ++i) {
    const SavedHead::Filled& of = saved.heads[i];
    state->filled[i].rows = static_cast<size_t>(of.rows);
    if (!caches_ || of.rows == 0) continue;
    if (!of.entries.has_value() || !make_cache(state.get(), i)) return none;
    cache::KvCache& cache = *state->filled[i].cache;
    if (!cache::check_entries(*of.entries, cache).ok()) return none;
    GEN_TRY(cache::restore_entries(*of.entries, cache));
  }
  const auto from = text.subspan(static_cast<size_t>(saved.base), static_cast<size_t>(saved.rows));
  state->base = saved.base;
  state->tokens.assign(from.begin(), from.end());
  state->waiting.resize(saved.waiting.size() / sizeof(float));
  std::memcpy(state->waiting.data(), saved.waiting.data(), saved.waiting.size());
  return std::unique_ptr<DraftState>(std::move(state));
}

// ---- Rows of the text ----

void HeadDrafter::observe(std::span<const ObservedRows> rows) {
  full_.clear();
  full_.reserve(rows.size());
  for (const ObservedRows& each : rows) {
    HeadState& state = *static_cast<HeadState*>(each.state);
    state.settle_open();
    const int64_t end = int64_t{state.base} + static_cast<int64_t>(state.tokens.size());
    if (each.first_position < state.base || each.first_position > end) {
      state.begin_at(each.first_position);
    } else if (each.first_position < end) {
      state.cut(static_cast<size_t>(each.first_position - state.base));
    }
    // Where every step has a draft of somebody else, this is the only moment without an open one.
    if (state.rows_waiting() > kMostWaiting) {
      HeadState* const full = &state;
      fill({&full, 1});
    }
    const size_t before = state.waiting.size();
    try {
      state.tokens.reserve(state.tokens.size() + each.tokens.size());
      state.waiting.resize(before + each.tokens.size() * width_);
    } catch (...) {  // the next rows begin anew
      continue;
    }
    state.tokens.insert(state.tokens.end(), each.tokens.begin(), each.tokens.end());
    const auto width = static_cast<size_t>(head_->width);
    float* to = state.waiting.data() + before;
    for (size_t row = 0; row < each.tokens.size(); ++row) {
      for (const float* const from : each.features) {
        to = std::copy_n(from + row * width, width, to);
      }
    }
    if (each.drafted) state.open = each.tokens.size();
    if (state.open == 0 && state.rows_waiting() > kMostWaiting) full_.push_back(&state);
  }
  if (!full_.empty()) fill(full_);
}

// A row runs once the token after it is known, so one always waits.
void HeadDrafter::fill(std::span<HeadState* const> states) {
  for (HeadState* const state : states) {
    state->drop_unusable();
    bool filled = true;
    for (size_t head = 0; filled && head < heads_; ++head) filled = fill(state, head);
    if (filled) continue;
    // It begins behind these rows when memory can be had again.
    const auto next = state->base + static_cast<int32_t>(state->tokens.size());
    state->begin_at(next);
  }
}

bool HeadDrafter::fill(HeadState* state, size_t head) {
  const auto most = static_cast<size_t>(head_->first->traits().max_batch_rows);
  if (!caches_) {  // only the last row matters
    if (state->rows_for(head) > 0) state->fill(head, state->rows_for(head) - 1);
    return true;
  }
  while (state->rows_for(head) > 1) {
    const EndDraft end(&running_);
    begin_pass(head);
    running_.push_back({.of = {}, .state = state});
    const size_t rows = std::min(state->rows_for(head) - 1, most);
    const auto n = static_cast<int32_t>(rows);
    if (!make_cache(state, head_now_) || !plan_rows(&running_.back(), n)) return false;
    add_waiting(&running_.back(), n, -1);
    if (!run_pass(head_model(head), false)) return false;
  }
  return true;
}

const model::Model& HeadDrafter::head_model(size_t head) const noexcept {
  return head == 0 ? *head_->first : *head_->later[head - 1];
}

/// True if there is one.
bool HeadDrafter::make_cache(HeadState* state, size_t head) const {
  HeadState::Filled& of = state->filled[head];
  if (of.cache != nullptr) return true;
  auto made = options_.cache_factory(head_model(head).layer_shapes(), options_.context);
  if (!made.ok()) return false;
  of.cache = std::move(made).value();
  return true;
}

// ---- Drafts ----

// As many sessions at a time as have room in a pass with all of their rows.
void HeadDrafter::propose(std::span<DraftJob* const> jobs) {
  const model::ModelTraits& traits = head_->first->traits();
  const auto most = static_cast<size_t>(traits.max_batch_sequences);
  const auto room = static_cast<size_t>(traits.max_batch_rows);
  size_t first = 0;
  size_t rows = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto* const state = static_cast<HeadState*>(jobs[i]->state);
    state->settle_open();
    state->drop_unusable();
    if (state->rows_waiting() > room) fill({&state, 1});
    const size_t own =
        caches_ ? std::max(state->rows_waiting(), size_t{1}) + head_->later.size() : 1;
    if (i - first == most || (i > first && rows + own > room)) {
      propose_group(jobs.subspan(first, i - first));
      first = i;
      rows = 0;
    }
    rows += own;
  }
  propose_group(jobs.subspan(first));
}

void HeadDrafter::propose_group(std::span<DraftJob* const> jobs) {
  const EndDraft end(&running_);
  begin_pass(0);
  running_.reserve(jobs.size());
  int32_t room = head_->first->traits().max_batch_rows;
  for (DraftJob* const job : jobs) {
    auto* const state = static_cast<HeadState*>(job->state);
    if (state->unsure && !state->is_of(job->tokens)) {
      state->begin_at(static_cast<int32_t>(job->tokens.size()) - 1);
    }
    state->unsure = false;
    // Rows that this drafter has not seen end the draft: the pending token's is the next one.
    const size_t known = static_cast<size_t>(state->base) + state->tokens.size() + 1;
    if (job->tokens.size() != known || state->rows_for(0) == 0) continue;
    if (static_cast<size_t>(options_.context) < job->tokens.size()) continue;
    if (state->resting > 0) {
      --state->resting;
      continue;
    }
    const auto held = static_cast<int32_t>(job->tokens.size()) - 1;
    if (reads_ && (job->cache == nullptr || job->cache->length() != held)) continue;
    running_.push_back({.of = {.job = job}, .state = state});
    if (begin_draft(&running_.back(), &room)) continue;
    state->resting = kRestAfterFailure;
    ++job->failures;
    running_.pop_back();
  }
  const model::Model* model = head_->first.get();
  for (size_t depth = 1; !tokens_.empty(); ++depth) {
    if (!run_pass(*model, true)) {
      for (const Running& running : running_) ++running.of.job->failures;
      return;
    }
    for (Running& running : running_) {
      if (!running.of.ends) guess(&running);
    }
    const size_t head = std::min(depth, heads_ - 1);
    model = head == 0 ? head_->next.get() : &head_model(head);
    begin_pass(head);
    for (Running& running : running_) {
      if (running.of.ends || go_on(&running)) continue;
      running.of.ends = true;
      ++running.of.job->failures;
    }
  }
}

// A row for the last token that was drafted. A later head begins with all rows that wait for it,
// and runs the draft's anew. False without memory, or with no room left in the pass.
bool HeadDrafter::go_on(Running* running) {
  const auto last = static_cast<size_t>(running->last);
  const auto own = std::span(states_).subspan(last * own_width_, own_width_);
  const std::span<const int32_t> drafted = running->of.job->tree.tokens();
  if (head_now_ == 0) {
    if (!plan_rows(running, 1)) return false;
    add_row(running, drafted.back(), own);
  } else {
    running->states.insert(running->states.end(), own.begin(), own.end());
    const size_t waiting = running->state->rows_for(head_now_);
    const size_t rows = waiting + drafted.size() - 1;
    const auto room = static_cast<size_t>(head_->first->traits().max_batch_rows);
    if (tokens_.size() + rows > room || !make_cache(running->state, head_now_) ||
        !plan_rows(running, static_cast<int32_t>(rows))) {
      return false;
    }
    add_waiting(running, static_cast<int32_t>(waiting), drafted[0]);
    for (size_t i = 1; i < drafted.size(); ++i) {
      add_row(running, drafted[i],
              std::span(running->states).subspan((i - 1) * own_width_, own_width_));
    }
  }
  want(running);
  return true;
}

// Adds all rows that wait, with the pending token as the last one. False without memory, or with no
// room left in the pass.
bool HeadDrafter::begin_draft(Running* running, int32_t* room) {
  HeadState* const state = running->state;
  const DraftJob& job = *running->of.job;
  running->of.logits = by_logits_ || !head_->tokens.empty() || Guesser::needs_logits(job);
  if (!caches_) state->fill(0, state->rows_for(0) - 1);
  const auto rows = static_cast<int32_t>(state->rows_for(0));
  if (rows > *room) return false;
  if ((caches_ && !make_cache(state, head_now_)) || !plan_rows(running, rows)) return false;
  add_waiting(running, rows, job.tokens.back());
  *room -= rows;
  want(running);
  return true;
}

void HeadDrafter::begin_pass(size_t head) noexcept {
  head_now_ = head;
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  features_.clear();
  sequences_.clear();
  n_logits_ = 0;
  n_best_ = 0;
}

bool HeadDrafter::plan_rows(Running* running, int32_t n) {
  HeadState& state = *running->state;
  graph::BatchSequence sequence;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = n;
  if (caches_) {
    cache::KvCache& own = *state.filled[head_now_].cache;
    Result<cache::CachePlan> plan = own.plan(n);
    if (!plan.ok() || plan->count != n) return false;
    sequence.cache = &own;
    sequence.plan = *plan;
  }
  if (reads_) {
    cache::KvCache& text = *running->of.job->cache;
    Result<cache::CachePlan> plan = text.plan(0);
    if (!plan.ok()) return false;
    sequence.cache = &text;
    sequence.plan = *plan;
  }
  running->settled = 0;
  sequences_.push_back(sequence);
  return true;
}

void HeadDrafter::add_row(Running* running, int32_t token, std::span<const float> features) {
  const graph::BatchSequence& sequence = sequences_.back();
  const auto row = static_cast<int32_t>(tokens_.size());
  running->last = row;
  tokens_.push_back(token);
  if (reads_) {
    positions_.push_back(sequence.cache->length());
  } else {
    const int32_t start =
        caches_ ? sequence.plan.start : static_cast<int32_t>(running->state->filled[0].rows);
    positions_.push_back(start + row - sequence.first_row);
  }
  wants_.push_back(graph::kWantsNothing);
  features_.insert(features_.end(), features.begin(), features.end());
}

void HeadDrafter::add_waiting(Running* running, int32_t n, int32_t last) {
  const HeadState& state = *running->state;
  const size_t first = state.filled[head_now_].rows;
  const size_t waiting = first - (state.tokens.size() - state.rows_waiting());
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const size_t next = first + i + 1;
    const int32_t token = next < state.tokens.size() ? state.tokens[next] : last;
    add_row(running, token, std::span(state.waiting).subspan((waiting + i) * width_, width_));
  }
  running->settled = n;
}

void HeadDrafter::want(Running* running) {
  wants_.back() = running->of.logits ? graph::kWantsLogits : graph::kWantsBest;
  running->row = running->of.logits ? n_logits_++ : n_best_++;
}

// A sequence that fails fails the whole pass: drafts do not justify running it again.
bool HeadDrafter::run_pass(const model::Model& model, bool states) {
  const auto vocab = static_cast<size_t>(model.traits().vocab_size);
  logits_.resize(static_cast<size_t>(n_logits_) * vocab);
  best_tokens_.resize(static_cast<size_t>(n_best_));
  best_logits_.resize(static_cast<size_t>(n_best_));
  graph::Tap tap;
  graph::Batch batch;
  if (states) {
    states_.resize(tokens_.size() * own_width_);
    tap = {.layer = head_->state, .out = states_.data()};
    batch.taps = {&tap, 1};
  }
  batch.tokens = tokens_;
  batch.features = features_;
  batch.positions = positions_;
  batch.wants = wants_;
  batch.sequences = sequences_;
  batch.logits = logits_.data();
  batch.logits_rows = static_cast<size_t>(n_logits_);
  batch.best.tokens = best_tokens_.data();
  batch.best.logits = best_logits_.data();
  batch.best.rows = static_cast<size_t>(n_best_);
  if (!model.forward(batch).ok()) return false;
  for (const graph::BatchSequence& sequence : sequences_) {
    if (caches_) sequence.cache->commit(sequence.plan);
  }
  for (Running& running : running_) {
    if (running.settled == 0) continue;
    running.state->fill(head_now_, static_cast<size_t>(running.settled));
    running.settled = 0;
  }
  return true;
}

void HeadDrafter::guess(Running* running) {
  DraftJob& job = *running->of.job;
  const auto row = static_cast<size_t>(running->row);
  if (!running->of.logits) {
    guesser_.add_best(&running->of, best_tokens_[row]);
  } else {
    const auto vocab = static_cast<size_t>(head_->first->traits().vocab_size);
    std::span<float> logits = std::span(logits_).subspan(row * vocab, vocab);
    if (!head_->tokens.empty()) {
      spread_.assign(static_cast<size_t>(options_.vocab), -std::numeric_limits<float>::infinity());
      for (size_t i = 0; i < vocab; ++i) {
        const auto token = static_cast<size_t>(head_->tokens[i]);
        if (token < spread_.size()) spread_[token] = logits[i];
      }
      logits = spread_;
    }
    guesser_.add(&running->of, logits);
  }
  if (running->of.ends) return;
  const size_t held = static_cast<size_t>(running->state->base) + running->state->tokens.size() +
                      static_cast<size_t>(job.tree.rows());
  running->of.ends = job.tree.rows() > std::min(job.most, options_.most) ||
                     held >= static_cast<size_t>(options_.context);
}

}  // namespace gen::generate
