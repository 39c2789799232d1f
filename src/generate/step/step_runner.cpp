// SPDX-License-Identifier: Apache-2.0
// See step_runner.h.
#include "generate/step/step_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/to_size.h"
#include "generate/request/metric_names.h"

namespace gen::generate {
namespace {

size_t wanted_rows(const StepPlan::Slice& slice, graph::Wants what) noexcept {
  const auto wants = slice.request->wants.first(static_cast<size_t>(slice.rows));
  return static_cast<size_t>(std::count(wants.begin(), wants.end(), uint8_t{what}));
}

}  // namespace

// Drafts that fail are left out.
void StepRunner::propose(std::span<StepPlan::Slice> slices) noexcept {
  try {
    timed_ = false;
    if (drafter_ == nullptr) return add_steps(slices);
    const bool planned = planner_.active();
    reserve(slices);
    const bool guesses = !planned || planner_.begin(slices);
    timed_ = planned;
    if (!guesses) {
      for (StepPlan::Slice& slice : slices) slice.drafts = 0;
      return;
    }
    if (!gather_jobs(slices)) return;
    const double begin = planned ? planner_.now() : 0;
    drafter_->look_up(jobs_);
    if (planned) {
      planner_.limit(slices, drafter_->max_proposed());
      planner_.note_looking(planner_.now() - begin);
    }
    ask_for_the_rest(slices);
    for (StepPlan::Slice& slice : slices) {
      if (slice.request->draft != nullptr && slice.rows == 1) add_guesses(&slice);
    }
  } catch (...) {  // no memory, or an exception of the drafter
    for (StepPlan::Slice& slice : slices) {
      if (slice.request->draft != nullptr) drop_drafts(&slice);
    }
    if (drafts()) metrics_.add(metric::kDraftsFailed, 1);
  }
}

// Number of steps after the first that fit into the time limit.
int32_t StepRunner::steps_in_time() const noexcept {
  if (step_seconds_ * kMaxMultiSteps <= kMaxMultiStepSeconds) return kMaxMultiSteps - 1;
  return std::max(static_cast<int32_t>(kMaxMultiStepSeconds / step_seconds_), 1) - 1;
}

// All sequences get the same number of rows, since rows run step by step.
void StepRunner::add_steps(std::span<StepPlan::Slice> slices) {
  int32_t steps = tracer_ == nullptr && !slices.empty() ? steps_in_time() : 0;
  for (const StepPlan::Slice& slice : slices) {
    const StepRequest& request = *slice.request;
    const bool stays = request.cache != nullptr && request.state == nullptr &&
                       request.adapters == nullptr &&
                       !request.cache->stages({request.cache->length(), 1});
    steps = stays && request.draft != nullptr ? std::min(steps, slice.drafts) : 0;
  }
  for (StepPlan::Slice& slice : slices) {
    slice.drafts = steps;
    if (steps == 0) continue;
    StepRequest& request = *slice.request;
    DraftJob& job = *request.draft;
    for (int32_t row = 0; row < steps; ++row) job.tree.add(0, row);
    job.wants.assign(to_size(steps) + 1, request.wants[0]);
    request.tokens = job.tree.tokens();
    request.wants = job.wants;
    slice.rows = steps + 1;
  }
}

void StepRunner::add_job(const StepPlan::Slice& slice) {
  DraftJob* const job = slice.request->draft;
  job->most = slice.drafts;
  job->cache = slice.request->cache;
  jobs_.push_back(job);
}

bool StepRunner::gather_jobs(std::span<const StepPlan::Slice> slices) {
  jobs_.clear();
  for (const StepPlan::Slice& slice : slices) {
    if (slice.drafts == 0) continue;
    add_job(slice);
  }
  return !jobs_.empty();
}

// Drafters propose for the slices that may have drafts and have none yet.
void StepRunner::ask_for_the_rest(std::span<const StepPlan::Slice> slices) {
  if (drafter_->max_proposed() == 0) return;
  jobs_.clear();
  for (const StepPlan::Slice& slice : slices) {
    if (slice.drafts == 0 || slice.request->draft->tree.rows() > 1) continue;
    add_job(slice);
  }
  if (jobs_.empty()) return;
  const bool planned = planner_.active();
  const double begin = planned ? planner_.now() : 0;
  drafter_->propose(jobs_);
  count_failures();
  if (!planned) return;
  int32_t depth = 0;
  for (const DraftJob* const job : jobs_) depth = std::max(depth, job->tree.rows() - 1);
  planner_.note_proposing(depth, planner_.now() - begin);
}

// Converts a job's tree to rows: each returns what the token does, and its position is that of the
// first row plus its depth. A tree that does not begin with the pending token is discarded.
void StepRunner::add_guesses(StepPlan::Slice* slice) {
  StepRequest& request = *slice->request;
  DraftJob& job = *request.draft;
  const bool begins = job.tree.rows() > 0 && job.tree.tokens()[0] == request.tokens[0];
  const int32_t valid = begins ? job.tree.valid_rows(model_.traits().vocab_size, !job.branches) : 0;
  job.tree.cut(std::min(slice->drafts + 1, valid));
  slice->drafts = std::max(job.tree.rows() - 1, 0);
  if (slice->drafts == 0) return;
  job.wants.assign(static_cast<size_t>(job.tree.rows()), request.wants[0]);
  if (!job.tree.is_chain()) {
    job.positions.assign(1, request.first_position);
    for (const int32_t parent : job.tree.parents().subspan(1)) {
      job.positions.push_back(job.positions[static_cast<size_t>(parent)] + 1);
    }
    request.parents = job.tree.parents();
    request.positions = job.positions;
  }
  request.tokens = job.tree.tokens();
  request.wants = job.wants;
  slice->rows = job.tree.rows();
}

// Reserves for everything offered, so that a step that uses more of it than earlier ones does not
// allocate.
void StepRunner::reserve(std::span<const StepPlan::Slice> slices) {
  size_t rows = 0;
  for (const StepPlan::Slice& slice : slices) {
    rows += static_cast<size_t>(slice.rows) + static_cast<size_t>(slice.drafts);
  }
  jobs_.reserve(slices.size());
  slices_.reserve(slices.size());
  sequences_.reserve(slices.size());
  tokens_.reserve(rows);
  positions_.reserve(rows);
  parents_.reserve(rows);
  wants_.reserve(rows);
}

// Whether the batch consists of one token per sequence, with or without drafts.
bool StepRunner::only_decodes() const noexcept {
  return std::all_of(slices_.begin(), slices_.end(), [](const StepPlan::Slice& slice) {
    return slice.rows == 1 || slice.drafts > 0;
  });
}

void StepRunner::count_failures() noexcept {
  int32_t failures = 0;
  for (const DraftJob* const job : jobs_) failures += job->failures;
  if (failures > 0) metrics_.add(metric::kDraftsFailed, failures);
}

void StepRunner::drop_drafts(StepPlan::Slice* slice) noexcept {
  StepRequest& request = *slice->request;
  if (request.draft == nullptr) return;
  DraftJob& job = *request.draft;
  job.tree.begin(job.tokens.back());
  request.tokens = job.tokens.last(1);
  request.wants = request.wants.first(1);
  request.parents = {};
  request.positions = {};
  slice->rows = 1;
  slice->drafts = 0;
}

void StepRunner::begin(std::span<const StepPlan::Slice> slices) {
  slices_.clear();
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  parents_.clear();
  wants_.clear();
  results_.begin(slices.size());
  multi_steps_ = 0;
  reserve(slices);
}

void StepRunner::add(const StepPlan::Slice& slice, const cache::CachePlan& plan) noexcept {
  const StepRequest& request = *slice.request;
  graph::BatchSequence sequence;
  sequence.cache = request.cache;
  sequence.state = request.state;
  sequence.plan = plan;
  sequence.state_plan = request.state_plan;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = plan.count;
  sequence.trace_id = request.trace_id;
  sequences_.push_back(sequence);
  const auto rows = static_cast<size_t>(plan.count);
  if (drafter_ == nullptr && slice.drafts > 0) {
    multi_steps_ = multi_steps_ == 0 ? plan.count : std::min(multi_steps_, plan.count);
  }
  const auto tokens = request.tokens.first(rows);
  const auto wants = request.wants.first(rows);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  wants_.insert(wants_.end(), wants.begin(), wants.end());
  for (size_t row = 0; row < rows; ++row) {
    positions_.push_back(request.positions.empty()
                             ? request.first_position + static_cast<int32_t>(row)
                             : request.positions[row]);
  }
  if (!request.parents.empty() || !parents_.empty()) {
    const size_t first = positions_.size() - rows;
    parents_.resize(positions_.size(), -1);
    for (size_t row = 1; row < std::min(rows, request.parents.size()); ++row) {
      parents_[first + row] = sequence.first_row + request.parents[row];
    }
  }
  slices_.push_back({slice.request, plan.count, slice.drafts});
  results_.add(request.query, wanted_rows(slices_.back(), graph::kWantsLogits),
               wanted_rows(slices_.back(), graph::kWantsBest),
               static_cast<int32_t>(tokens_.size()) - 1);
}

// If one sequence got fewer rows, all are cut to that number.
void StepRunner::even_steps() noexcept {
  if (multi_steps_ == 0) return;
  const size_t steps = to_size(multi_steps_);
  size_t at = 0;
  for (graph::BatchSequence& sequence : sequences_) {
    const size_t first = to_size(sequence.first_row);
    sequence.first_row = static_cast<int32_t>(at);
    sequence.n_rows = multi_steps_;
    for (size_t i = 0; i < steps; ++i, ++at) {
      tokens_[at] = tokens_[first + i];
      positions_[at] = positions_[first + i];
      wants_[at] = wants_[first + i];
    }
  }
  tokens_.resize(at);
  positions_.resize(at);
  wants_.resize(at);
  results_.cut_to_best(at);
  for (StepPlan::Slice& slice : slices_) slice.rows = multi_steps_;
}

// Called while the engine computes. If a mask fails, its request ignores the row's best tokens.
Status StepRunner::during(void* self) noexcept {
  for (const StepPlan::Slice& slice : static_cast<StepRunner*>(self)->slices_) {
    const graph::During& own = slice.request->query.during;
    if (own.call != nullptr) GEN_TRY(own.call(own.context));
  }
  return {};
}

void StepRunner::run() {
  const auto drop_all = [this]() noexcept {
    for (const graph::BatchSequence& sequence : sequences_) {
      if (sequence.state != nullptr) sequence.state->drop(sequence.state_plan);
    }
  };
  Status status;
  even_steps();
  const bool timed = std::exchange(timed_, false) && only_decodes();  // not if the step is retried
  const bool can_be_multi = model_.traits().multi_step && drafter_ == nullptr && only_decodes();
  const double begin = can_be_multi ? planner_.now() : 0.0;
  try {
    status = forward();
  } catch (...) {
    drop_all();
    throw;
  }
  if (status.ok()) {
    if (can_be_multi) step_seconds_ = (planner_.now() - begin) / std::max(multi_steps_, 1);
    hand_out();
    if (timed) planner_.end(static_cast<int32_t>(tokens_.size()));
    observe();
    return;
  }
  drop_all();
  for (const StepPlan::Slice& slice : slices_) slice.request->status = status;
}

Status StepRunner::number_adapters() {
  const auto number = [this](const model::AdapterMix* mix) {
    if (mix == nullptr) return int32_t{-1};
    const auto found = std::find(mixes_.begin(), mixes_.end(), mix->identity);
    return static_cast<int32_t>(found - mixes_.begin());
  };
  bool any = false;
  bool missing = false;
  for (const StepPlan::Slice& slice : slices_) {
    const model::AdapterMix* const mix = slice.request->adapters;
    any = any || mix != nullptr;
    missing = missing || number(mix) == static_cast<int32_t>(mixes_.size());
  }
  if (missing || !any) {
    mixes_.clear();
    adapters_.reset();  // frees those that nobody uses
  }
  if (missing) {
    // Kept only with the table: whatever fails here may throw.
    std::vector<uint64_t> mixes;
    std::vector<std::vector<graph::AdapterUse>> all;
    for (const StepPlan::Slice& slice : slices_) {
      const model::AdapterMix* const mix = slice.request->adapters;
      if (mix == nullptr || std::count(mixes.begin(), mixes.end(), mix->identity) > 0) continue;
      all.push_back(mix->uses);
      mixes.push_back(mix->identity);
    }
    GEN_ASSIGN(adapters_, model_.adapter_table(all));
    mixes_ = std::move(mixes);
  }
  for (size_t i = 0; i < slices_.size(); ++i) {
    sequences_[i].adapter = number(slices_[i].request->adapters);
  }
  return {};
}

// A single sequence writes its results directly and can be cancelled during the pass. Several share
// a buffer, and a cancelled one waits for the end of the step.
Status StepRunner::forward() {
  const StepRequest* const only = slices_.size() == 1 ? slices_.front().request : nullptr;
  GEN_TRY(number_adapters());
  graph::Batch batch;
  batch.tokens = tokens_;
  batch.positions = positions_;
  batch.parents = parents_;
  batch.wants = wants_;
  batch.sequences = sequences_;
  batch.adapters = adapters_.get();
  results_.place(only != nullptr ? &only->query : nullptr, &batch);
  place_taps(&batch);
  if (results_.any_mask()) batch.during = {during, this};
  if (only != nullptr) batch.cancel = only->cancel;
  batch.tracer = tracer_;
  batch.deterministic = deterministic_;
  batch.multi_steps = multi_steps_;
  return model_.forward(batch);
}

void StepRunner::place_taps(graph::Batch* batch) {
  taps_.clear();
  if (drafter_ == nullptr || drafter_->taps().empty()) return;
  const auto observed = [](const StepPlan::Slice& slice) {
    return slice.request->observer != nullptr;
  };
  if (std::none_of(slices_.begin(), slices_.end(), observed)) return;
  const auto layers = drafter_->taps();
  const size_t each = tokens_.size() * to_size(model_.traits().hidden);
  hidden_.resize(layers.size() * each);
  for (size_t i = 0; i < layers.size(); ++i) {
    taps_.push_back({.layer = layers[i], .out = hidden_.data() + i * each});
  }
  batch->taps = taps_;
}

void StepRunner::observe() noexcept {
  if (taps_.empty()) return;
  try {
    const size_t width = to_size(model_.traits().hidden);
    observed_.clear();
    features_.clear();
    features_.reserve(slices_.size() * taps_.size());
    for (size_t i = 0; i < slices_.size(); ++i) {
      const StepRequest& request = *slices_[i].request;
      if (request.observer == nullptr) continue;
      for (const graph::Tap& tap : taps_) {
        features_.push_back(tap.out + to_size(sequences_[i].first_row) * width);
      }
      const bool drafted = request.draft != nullptr && slices_[i].rows > 1;
      observed_.push_back(
          {request.observer,
           std::span(tokens_).subspan(to_size(sequences_[i].first_row), to_size(slices_[i].rows)),
           request.first_position, drafted, std::span(features_).last(taps_.size())});
    }
    drafter_->observe(observed_);
  } catch (...) {  // without these rows drafts are worse, or there are none
    metrics_.add(metric::kDraftsFailed, 1);
  }
}

void StepRunner::hand_out() noexcept {
  for (size_t i = 0; i < slices_.size(); ++i) {
    slices_[i].request->plan = sequences_[i].plan;
    slices_[i].request->taken = slices_[i].rows;
  }
  if (multi_steps_ > 0) return hand_out_steps();
  if (slices_.size() == 1) return;
  for (const StepPlan::Slice& slice : slices_) {
    results_.hand_out(slice.request->query, wanted_rows(slice, graph::kWantsLogits),
                      wanted_rows(slice, graph::kWantsBest));
  }
}

// The results are ordered by step.
void StepRunner::hand_out_steps() noexcept {
  const size_t n = slices_.size();
  for (size_t s = 0; s < n; ++s) {
    StepRequest& request = *slices_[s].request;
    for (size_t i = 0; i < to_size(multi_steps_); ++i) {
      if (n > 1) results_.hand_out_row(request.query, i, i * n + s);
      const auto next = static_cast<int32_t>(i) + 1;
      if (next < multi_steps_) request.draft->tree.set(next, request.query.best.tokens[i]);
    }
  }
}

void StepRunner::measure(std::span<const StepPlan::Slice> slices, SteadyClock::time_point begin,
                         SteadyClock::time_point end, size_t left_out, int32_t preempted) noexcept {
  const auto seconds = [](SteadyClock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  double rows = 0;
  double sequences = 0;
  bool failed = false;
  for (const StepPlan::Slice& slice : slices) {
    const StepRequest& request = *slice.request;
    if (request.starved || request.evicted) continue;  // it will wait again
    metrics_.observe(metric::kQueueWaitSeconds, seconds(begin - request.submitted));
    failed = failed || (!request.status.ok() && request.status.code() != Code::kCancelled);
    rows += slice.rows;
    ++sequences;
  }
  if (sequences > 0) {
    metrics_.add(metric::kSteps, 1);
    if (failed) metrics_.add(metric::kStepsFailed, 1);
    metrics_.observe(metric::kStepSeconds, seconds(end - begin));
    metrics_.observe(metric::kBatchSequences, sequences);
    metrics_.observe(metric::kBatchRows, rows);
  }
  if (preempted > 0) metrics_.add(metric::kPreemptions, preempted);
  metrics_.set(metric::kQueueLength, static_cast<double>(left_out + slices.size()) - sequences);
  measure_caches();
}

void StepRunner::measure_caches() noexcept {
  if (measure_caches_ == nullptr || !*measure_caches_) return;
  const std::unique_lock measuring(measuring_, std::try_to_lock);
  if (!measuring.owns_lock()) return;
  try {
    (*measure_caches_)(metrics_);
  } catch (...) {  // gauges that fail keep their value
  }
}

}  // namespace gen::generate
