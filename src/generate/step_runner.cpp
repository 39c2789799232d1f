// SPDX-License-Identifier: Apache-2.0
// See step_runner.h.
#include "generate/step_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/to_size.h"
#include "generate/metric_names.h"

namespace gen::generate {
namespace {

size_t wanted_rows(const StepPlan::Part& part, graph::Wants what) noexcept {
  const auto wants = part.request->wants.first(static_cast<size_t>(part.rows));
  return static_cast<size_t>(std::count(wants.begin(), wants.end(), uint8_t{what}));
}

}  // namespace

// What cannot be guessed, or is not to be, is left out.
void StepRunner::propose(std::span<StepPlan::Part> parts) noexcept {
  try {
    timed_ = false;
    if (drafter_ == nullptr) return add_links(parts);
    const bool planned = planner_.active();
    reserve(parts);
    const bool guesses = !planned || planner_.begin(parts);
    timed_ = planned;
    if (!guesses) {
      for (StepPlan::Part& part : parts) part.drafts = 0;
      return;
    }
    if (!gather_jobs(parts)) return;
    const double begin = planned ? planner_.now() : 0;
    drafter_->look_up(jobs_);
    if (planned) {
      planner_.limit(parts, drafter_->max_proposed());
      planner_.note_looking(planner_.now() - begin);
    }
    ask_for_the_rest(parts);
    for (StepPlan::Part& part : parts) {
      if (part.request->draft != nullptr && part.rows == 1) add_guesses(&part);
    }
  } catch (...) {  // no memory, or a drafter's own failure
    for (StepPlan::Part& part : parts) {
      if (part.request->draft != nullptr) drop_drafts(&part);
    }
    if (drafts()) metrics_.add(metric::kDraftsFailed, 1);
  }
}

// Rows behind the first that a chain has time for.
int32_t StepRunner::links_in_time() const noexcept {
  if (link_seconds_ * kMaxLinks <= kMaxChainSeconds) return kMaxLinks - 1;
  return std::max(static_cast<int32_t>(kMaxChainSeconds / link_seconds_), 1) - 1;
}

// As many rows as all of the step may have, since those of a chain come step by step.
void StepRunner::add_links(std::span<StepPlan::Part> parts) {
  int32_t links = tracer_ == nullptr && !parts.empty() ? links_in_time() : 0;
  for (const StepPlan::Part& part : parts) {
    const StepRequest& request = *part.request;
    const bool stays = request.cache != nullptr && request.state == nullptr &&
                       !request.cache->stages({request.cache->length(), 1});
    links = stays && request.draft != nullptr ? std::min(links, part.drafts) : 0;
  }
  for (StepPlan::Part& part : parts) {
    part.drafts = links;
    if (links == 0) continue;
    StepRequest& request = *part.request;
    DraftJob& job = *request.draft;
    for (int32_t row = 0; row < links; ++row) job.tree.add(0, row);
    job.wants.assign(to_size(links) + 1, request.wants[0]);
    request.tokens = job.tree.tokens();
    request.wants = job.wants;
    part.rows = links + 1;
  }
}

bool StepRunner::gather_jobs(std::span<const StepPlan::Part> parts) {
  jobs_.clear();
  for (const StepPlan::Part& part : parts) {
    if (part.drafts == 0) continue;
    part.request->draft->most = part.drafts;
    jobs_.push_back(part.request->draft);
  }
  return !jobs_.empty();
}

// Drafters propose for those that are to have guesses and have none yet.
void StepRunner::ask_for_the_rest(std::span<const StepPlan::Part> parts) {
  if (drafter_->max_proposed() == 0) return;
  jobs_.clear();
  for (const StepPlan::Part& part : parts) {
    if (part.drafts == 0 || part.request->draft->tree.rows() > 1) continue;
    part.request->draft->most = part.drafts;
    jobs_.push_back(part.request->draft);
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

// What a job's rows are to the model: each wants what the token does, and stands as far behind the
// first as the path to it is long. A tree that no longer begins with that token is none.
void StepRunner::add_guesses(StepPlan::Part* part) {
  StepRequest& request = *part->request;
  DraftJob& job = *request.draft;
  const bool begins = job.tree.rows() > 0 && job.tree.tokens()[0] == request.tokens[0];
  const int32_t valid = begins ? job.tree.valid_rows(model_.traits().vocab_size, !job.branches) : 0;
  job.tree.cut(std::min(part->drafts + 1, valid));
  part->drafts = std::max(job.tree.rows() - 1, 0);
  if (part->drafts == 0) return;
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
  part->rows = job.tree.rows();
}

// For all that is offered, so that a step that takes more of it than those before allocates
// nothing.
void StepRunner::reserve(std::span<const StepPlan::Part> parts) {
  size_t rows = 0;
  for (const StepPlan::Part& part : parts) {
    rows += static_cast<size_t>(part.rows) + static_cast<size_t>(part.drafts);
  }
  jobs_.reserve(parts.size());
  parts_.reserve(parts.size());
  sequences_.reserve(parts.size());
  tokens_.reserve(rows);
  positions_.reserve(rows);
  parents_.reserve(rows);
  wants_.reserve(rows);
}

// Whether the batch has the rows of one token of each sequence, and drafts, alone.
bool StepRunner::only_decodes() const noexcept {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const StepPlan::Part& part) { return part.rows == 1 || part.drafts > 0; });
}

void StepRunner::count_failures() noexcept {
  int32_t failures = 0;
  for (const DraftJob* const job : jobs_) failures += job->failures;
  if (failures > 0) metrics_.add(metric::kDraftsFailed, failures);
}

void StepRunner::drop_drafts(StepPlan::Part* part) noexcept {
  StepRequest& request = *part->request;
  if (request.draft == nullptr) return;
  DraftJob& job = *request.draft;
  job.tree.begin(job.tokens.back());
  request.tokens = job.tokens.last(1);
  request.wants = request.wants.first(1);
  request.parents = {};
  request.positions = {};
  part->rows = 1;
  part->drafts = 0;
}

void StepRunner::begin(std::span<const StepPlan::Part> parts) {
  parts_.clear();
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  parents_.clear();
  wants_.clear();
  results_.begin(parts.size());
  chained_ = 0;
  reserve(parts);
}

void StepRunner::add(const StepPlan::Part& part, const cache::CachePlan& plan) noexcept {
  const StepRequest& request = *part.request;
  graph::BatchSequence sequence;
  sequence.cache = request.cache;
  sequence.state = request.state;
  sequence.plan = plan;
  sequence.state_plan = request.state_plan;
  sequence.adapter = request.adapter;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = plan.count;
  sequence.trace_id = request.trace_id;
  sequences_.push_back(sequence);
  const auto rows = static_cast<size_t>(plan.count);
  if (drafter_ == nullptr && part.drafts > 0) {
    chained_ = chained_ == 0 ? plan.count : std::min(chained_, plan.count);
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
  parts_.push_back({part.request, plan.count, part.drafts});
  results_.add(request.query, wanted_rows(parts_.back(), graph::kWantsLogits),
               wanted_rows(parts_.back(), graph::kWantsBest),
               static_cast<int32_t>(tokens_.size()) - 1);
}

// Where there was less room for one of them, all are as short.
void StepRunner::even_chains() noexcept {
  if (chained_ == 0) return;
  const size_t links = to_size(chained_);
  size_t at = 0;
  for (graph::BatchSequence& sequence : sequences_) {
    const size_t first = to_size(sequence.first_row);
    sequence.first_row = static_cast<int32_t>(at);
    sequence.n_rows = chained_;
    for (size_t i = 0; i < links; ++i, ++at) {
      tokens_[at] = tokens_[first + i];
      positions_[at] = positions_[first + i];
      wants_[at] = wants_[first + i];
    }
  }
  tokens_.resize(at);
  positions_.resize(at);
  wants_.resize(at);
  results_.cut_to_best(at);
  for (StepPlan::Part& part : parts_) part.rows = chained_;
}

// While the engine computes. A mask that cannot be made leaves a choice that its request ignores.
Status StepRunner::during(void* self) noexcept {
  for (const StepPlan::Part& part : static_cast<StepRunner*>(self)->parts_) {
    const graph::During& own = part.request->query.during;
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
  even_chains();
  const bool timed = std::exchange(timed_, false) && only_decodes();  // not where it is tried again
  const bool linked = model_.traits().chains && drafter_ == nullptr && only_decodes();
  const double begin = linked ? planner_.now() : 0.0;
  try {
    status = forward();
  } catch (...) {
    drop_all();
    throw;
  }
  if (status.ok()) {
    if (linked) link_seconds_ = (planner_.now() - begin) / std::max(chained_, 1);
    hand_out();
    if (timed) planner_.end(static_cast<int32_t>(tokens_.size()));
    return;
  }
  drop_all();
  for (const StepPlan::Part& part : parts_) part.request->status = status;
}

// A single sequence writes its results and is cancelled in place; several share a buffer, and a
// cancelled one waits for the end of the step.
Status StepRunner::forward() {
  const StepRequest* const only = parts_.size() == 1 ? parts_.front().request : nullptr;
  graph::Batch batch;
  batch.tokens = tokens_;
  batch.positions = positions_;
  batch.parents = parents_;
  batch.wants = wants_;
  batch.sequences = sequences_;
  results_.place(only != nullptr ? &only->query : nullptr, &batch);
  if (results_.any_mask()) batch.during = {during, this};
  if (only != nullptr) batch.cancel = only->cancel;
  batch.tracer = tracer_;
  batch.deterministic = deterministic_;
  batch.chained = chained_;
  return model_.forward(batch);
}

void StepRunner::hand_out() noexcept {
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].request->plan = sequences_[i].plan;
    parts_[i].request->taken = parts_[i].rows;
  }
  if (chained_ > 0) return hand_out_chains();
  if (parts_.size() == 1) return;
  for (const StepPlan::Part& part : parts_) {
    results_.hand_out(part.request->query, wanted_rows(part, graph::kWantsLogits),
                      wanted_rows(part, graph::kWantsBest));
  }
}

// Results come link by link.
void StepRunner::hand_out_chains() noexcept {
  const size_t n = parts_.size();
  for (size_t s = 0; s < n; ++s) {
    StepRequest& request = *parts_[s].request;
    for (size_t i = 0; i < to_size(chained_); ++i) {
      if (n > 1) results_.hand_out_row(request.query, i, i * n + s);
      const auto next = static_cast<int32_t>(i) + 1;
      if (next < chained_) request.draft->tree.set(next, request.query.best.tokens[i]);
    }
  }
}

void StepRunner::measure(std::span<const StepPlan::Part> parts, SteadyClock::time_point begin,
                         SteadyClock::time_point end, size_t left_out, int32_t preempted) noexcept {
  const auto seconds = [](SteadyClock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  double rows = 0;
  double sequences = 0;
  bool failed = false;
  for (const StepPlan::Part& part : parts) {
    const StepRequest& request = *part.request;
    if (request.starved || request.evicted) continue;  // its turn is still to come
    metrics_.observe(metric::kQueueWaitSeconds, seconds(begin - request.submitted));
    failed = failed || (!request.status.ok() && request.status.code() != Code::kCancelled);
    rows += part.rows;
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
  metrics_.set(metric::kQueueLength, static_cast<double>(left_out + parts.size()) - sequences);
  measure_caches();
}

void StepRunner::measure_caches() noexcept {
  if (measure_caches_ == nullptr || !*measure_caches_) return;
  const std::unique_lock measuring(measuring_, std::try_to_lock);
  if (!measuring.owns_lock()) return;
  try {
    (*measure_caches_)(metrics_);
  } catch (...) {  // gauges that are not set stay what they were
  }
}

}  // namespace gen::generate
