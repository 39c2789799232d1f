// SPDX-License-Identifier: Apache-2.0
// See head_drafter.h.
#include "generate/draft/head_drafter.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "cache/sequence/cache_format.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"

namespace gen::generate {
namespace {

/// Rows of a text that may wait: few enough for their memory, many enough for a pass that costs
/// little more than one over a single row.
constexpr size_t kMostWaiting = 32;

bool all_finite(std::span<const float> values) noexcept {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & kExponent);
  }
  return largest < kExponent;
}

}  // namespace

/// The text from position `base` on. Row i is that of tokens[i], and runs with the features of row
/// i - 1 of the target: row i of the head is kept at entry i - 1 of its cache.
struct HeadDrafter::State final : DraftState {
  explicit State(size_t features) : width(features) {}
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override {
    auto copy = std::make_unique<State>(width);
    if (cache != nullptr) {
      auto forked = cache->fork();
      if (!forked.ok()) return copy;
      copy->cache = std::move(forked).value();
    }
    copy->base = base;
    copy->tokens = tokens;
    copy->waiting = waiting;
    copy->filled = filled;
    copy->open = open;
    return copy;
  }
  void settle(std::span<const int32_t> path) noexcept override {
    if (open == 0) return;
    const size_t first = tokens.size() - open;
    const size_t first_waiting = waiting.size() / width - open;
    size_t kept = 0;
    for (const int32_t row : path) {
      if (row < 0 || static_cast<size_t>(row) >= open) break;
      tokens[first + kept] = tokens[first + static_cast<size_t>(row)];
      std::copy_n(waiting.begin() + at(first_waiting + static_cast<size_t>(row)), width,
                  waiting.begin() + at(first_waiting + kept));
      ++kept;
    }
    tokens.resize(first + kept);
    waiting.resize((first_waiting + kept) * width);
    open = 0;
  }
  /// Row 0 of a tree was the pending token.
  void settle_open() noexcept {
    constexpr int32_t kFirst = 0;
    settle({&kFirst, 1});
  }
  [[nodiscard]] std::ptrdiff_t at(size_t row) const noexcept {
    return static_cast<std::ptrdiff_t>(row * width);
  }
  [[nodiscard]] size_t rows_waiting() const noexcept { return waiting.size() / width; }
  void begin_at(int32_t position) noexcept {
    if (cache == nullptr || !cache->truncate(0).ok()) cache = nullptr;
    base = position;
    tokens.clear();
    waiting.clear();
    filled = 0;
    open = 0;
  }
  /// Keeps the first `n` tokens. An entry for the token after them may stay.
  void cut(size_t n) noexcept {
    const size_t dropped = tokens.size() - std::min(n, tokens.size());
    tokens.resize(tokens.size() - dropped);
    waiting.resize((rows_waiting() - std::min(dropped, rows_waiting())) * width);
    filled = std::min(filled, tokens.size());
    if (cache != nullptr && !cache->truncate(static_cast<int32_t>(filled)).ok()) {
      begin_at(base + static_cast<int32_t>(n));
    }
  }
  /// Begins anew behind the last row whose features are not finite, as those are that a caller's
  /// function did not write: no row of the head can follow it.
  void drop_unusable() noexcept {
    for (size_t row = rows_waiting(); row > 0; --row) {
      if (all_finite(std::span(waiting).subspan((row - 1) * width, width))) continue;
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(filled + row));
      waiting.erase(waiting.begin(), waiting.begin() + at(row));
      base += static_cast<int32_t>(filled + row);
      filled = 0;
      if (cache == nullptr || !cache->truncate(0).ok()) cache = nullptr;
      return;
    }
  }
  /// Drops the features of rows that the cache now has the entries of.
  void fill(size_t rows) noexcept {
    waiting.erase(waiting.begin(), waiting.begin() + at(rows));
    filled += rows;
  }

  const size_t width;
  std::unique_ptr<cache::KvCache> cache;  // created on first use
  int32_t base = 0;
  std::vector<int32_t> tokens;  // rows of the target that were seen
  std::vector<float> waiting;   // [rows, F] features of the last of them
  size_t filled = 0;            // entries of the cache; filled + waiting are the tokens
  size_t open = 0;              // of the tokens: the last ones, which are a tree
  int32_t resting = 0;          // proposals for which it is still skipped
};

/// Takes back what drafts have added to matchers and caches, however a proposal ends.
class HeadDrafter::EndDraft {
 public:
  explicit EndDraft(std::vector<Running>* running) noexcept : running_(*running) {}
  ~EndDraft() {
    for (const Running& each : running_) {
      if (each.of.job != nullptr) give_back(each.of);
      State& state = *each.state;
      if (state.cache == nullptr) continue;
      if (!state.cache->truncate(static_cast<int32_t>(state.filled)).ok()) {
        state.begin_at(state.base);
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
      caches_(!head_->first->layer_shapes().empty()),
      by_logits_(head_->first->traits().max_best == 0) {}

Result<std::shared_ptr<HeadDrafter>> HeadDrafter::create(
    std::shared_ptr<const model::DraftHead> head, Options options) {
  options.most = std::clamp(options.most, 1, kMaxDraftRows - 1);
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

std::unique_ptr<DraftState> HeadDrafter::begin() { return std::make_unique<State>(width_); }

// ---- Rows of the text ----

void HeadDrafter::observe(std::span<const ObservedRows> rows) {
  full_.clear();
  full_.reserve(rows.size());
  for (const ObservedRows& each : rows) {
    State& state = *static_cast<State*>(each.state);
    state.settle_open();
    const int64_t end = int64_t{state.base} + static_cast<int64_t>(state.tokens.size());
    if (each.first_position < state.base || each.first_position > end) {
      state.begin_at(each.first_position);
    } else if (each.first_position < end) {
      state.cut(static_cast<size_t>(each.first_position - state.base));
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
void HeadDrafter::fill(std::span<State* const> states) {
  const auto most = static_cast<size_t>(head_->first->traits().max_batch_rows);
  for (State* const state : states) {
    state->drop_unusable();
    if (!caches_) {  // only the last row matters
      if (state->rows_waiting() > 0) state->fill(state->rows_waiting() - 1);
      continue;
    }
    while (state->rows_waiting() > 1) {
      const EndDraft end(&running_);
      begin_pass();
      running_.push_back({.of = {}, .state = state});
      Running& running = running_.back();
      const bool made = state->cache != nullptr || make_cache(state);
      const size_t rows = std::min(state->rows_waiting() - 1, most);
      if (!made || !add_waiting(&running, static_cast<int32_t>(rows), -1) ||
          !run_pass(*head_->first, false)) {
        // It begins behind these rows when memory can be had again.
        const auto next = state->base + static_cast<int32_t>(state->tokens.size());
        state->begin_at(next);
        break;
      }
    }
  }
}

bool HeadDrafter::make_cache(State* state) {
  auto made = options_.cache_factory(head_->first->layer_shapes(), options_.context);
  if (!made.ok()) return false;
  state->cache = std::move(made).value();
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
    auto* const state = static_cast<State*>(jobs[i]->state);
    state->settle_open();
    state->drop_unusable();
    if (state->rows_waiting() > room) fill({&state, 1});
    const size_t own = caches_ ? std::max(state->rows_waiting(), size_t{1}) : 1;
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
  begin_pass();
  running_.reserve(jobs.size());
  int32_t room = head_->first->traits().max_batch_rows;
  for (DraftJob* const job : jobs) {
    auto* const state = static_cast<State*>(job->state);
    // Rows that this drafter has not seen end the draft: the pending token's is the next one.
    const size_t known = static_cast<size_t>(state->base) + state->tokens.size() + 1;
    if (job->tokens.size() != known || state->rows_waiting() == 0) continue;
    if (static_cast<size_t>(options_.context) < job->tokens.size()) continue;
    if (state->resting > 0) {
      --state->resting;
      continue;
    }
    running_.push_back({.of = {.job = job}, .state = state});
    if (begin_draft(&running_.back(), &room)) continue;
    state->resting = kRestAfterFailure;
    ++job->failures;
    running_.pop_back();
  }
  const model::Model* model = head_->first.get();
  while (!tokens_.empty()) {
    if (!run_pass(*model, true)) {
      for (const Running& running : running_) ++running.of.job->failures;
      return;
    }
    for (Running& running : running_) {
      if (!running.of.ends) guess(&running);
    }
    begin_pass();
    model = head_->next.get();
    for (Running& running : running_) {
      if (running.of.ends) continue;
      const int32_t token = running.of.job->tree.tokens().back();
      const auto own =
          std::span(states_).subspan(static_cast<size_t>(running.last) * own_width_, own_width_);
      if (plan_rows(&running, 1)) {
        add_row(&running, token, own);
        want(&running);
        continue;
      }
      running.of.ends = true;
      ++running.of.job->failures;
    }
  }
}

// Adds all rows that wait, with the pending token as the last one. False without memory, or with no
// room left in the pass.
bool HeadDrafter::begin_draft(Running* running, int32_t* room) {
  State* const state = running->state;
  const DraftJob& job = *running->of.job;
  running->of.logits = by_logits_ || !head_->tokens.empty() || Guesser::needs_logits(job);
  if (!caches_) state->fill(state->rows_waiting() - 1);
  const auto rows = static_cast<int32_t>(state->rows_waiting());
  if (rows > *room) return false;
  if (caches_ && state->cache == nullptr && !make_cache(state)) return false;
  if (!add_waiting(running, rows, job.tokens.back())) return false;
  *room -= rows;
  want(running);
  return true;
}

void HeadDrafter::begin_pass() noexcept {
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  features_.clear();
  sequences_.clear();
  n_logits_ = 0;
  n_best_ = 0;
}

bool HeadDrafter::plan_rows(Running* running, int32_t n) {
  State& state = *running->state;
  graph::BatchSequence sequence;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = n;
  if (caches_) {
    Result<cache::CachePlan> plan = state.cache->plan(n);
    if (!plan.ok() || plan->count != n) return false;
    sequence.cache = state.cache.get();
    sequence.plan = *plan;
  }
  running->settled = 0;
  sequences_.push_back(sequence);
  return true;
}

void HeadDrafter::add_row(Running* running, int32_t token, std::span<const float> features) {
  const graph::BatchSequence& sequence = sequences_.back();
  const auto row = static_cast<int32_t>(tokens_.size());
  const int32_t start =
      caches_ ? sequence.plan.start : static_cast<int32_t>(running->state->filled);
  running->last = row;
  tokens_.push_back(token);
  positions_.push_back(start + row - sequence.first_row);
  wants_.push_back(graph::kWantsNothing);
  features_.insert(features_.end(), features.begin(), features.end());
}

bool HeadDrafter::add_waiting(Running* running, int32_t n, int32_t last) {
  const State& state = *running->state;
  if (!plan_rows(running, n)) return false;
  const size_t first = state.filled;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const size_t next = first + i + 1;
    const int32_t token = next < state.tokens.size() ? state.tokens[next] : last;
    add_row(running, token, std::span(state.waiting).subspan(i * width_, width_));
  }
  running->settled = n;
  return true;
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
    if (sequence.cache != nullptr) sequence.cache->commit(sequence.plan);
  }
  for (Running& running : running_) {
    if (running.settled == 0) continue;
    running.state->fill(static_cast<size_t>(running.settled));
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
