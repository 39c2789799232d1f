// SPDX-License-Identifier: Apache-2.0
// See draft_planner.h.
#include "generate/step/draft_planner.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace gen::generate {

double DraftPlanner::now() const {
  if (policy_.clock) return policy_.clock();
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

void DraftPlanner::take_in(DraftRecord* record) noexcept {
  const int32_t known = std::min(record->proposed, record->accepted + 1);
  for (int32_t i = 0; i < known; ++i) {
    const int32_t grade = record->grades[static_cast<size_t>(i)];
    record->acceptance.note(grade, i, i < record->accepted);
    acceptance_.note(grade, i, i < record->accepted);
  }
  if (record->proposed > 0) ledger_.note_right(record->accepted * record->worth);
  record->proposed = 0;
}

// Accounts for the last step when the next one begins. If both have the same sequences, the time
// their sessions took in between belongs to the step. For a plain step the ledger gets no extra
// cost, however far its time is from the estimate.
void DraftPlanner::settle(double now, bool same) noexcept {
  const int32_t rows = std::exchange(looked_, 0);
  if (rows == 0) return;
  double took = end_ - begin_;
  if (same && now - end_ <= kIdle * took) took = now - begin_;
  took -= spent_;
  if (!is_time(took)) return;
  steps_.note(rows, took);
  const double plain = steps_.seconds(rows_);
  const double longer = rows > rows_ ? took - plain : 0;
  if (plain > 0) ledger_.note_step((spent_ + longer) / plain);
}

// Reserves memory for every offered draft, so that nothing is allocated while the same sequences
// run.
bool DraftPlanner::begin(std::span<const StepPlan::Slice> slices) {
  size_t who = 0;
  for (const StepPlan::Slice& slice : slices) who += std::hash<const void*>()(slice.request);
  const double time = now();
  settle(time, who == who_);
  who_ = who;
  begin_ = time;
  rows_ = 0;
  spent_ = 0;
  size_t offered = 0;
  bool prompts = false;
  for (const StepPlan::Slice& slice : slices) {
    rows_ += slice.rows;
    prompts = prompts || slice.rows > 1;
    offered += static_cast<size_t>(slice.drafts);
    if (slice.request->draft != nullptr) take_in(&slice.request->draft->record);
  }
  candidates_.reserve(slices.size());
  order_.reserve(offered);
  // Times of passes with prompts say nothing about other passes.
  if (prompts || offered == 0) return false;
  const bool known = steps_.knows(rows_);
  if (!known || busy_ >= plain_after_) {
    plain_after_ = known ? std::min(2 * plain_after_, kPlainAfter) : kFirstPlain;
    busy_ = 0;
    return false;
  }
  return ledger_.allows();
}

void DraftPlanner::note_looking(double seconds) noexcept {
  if (is_time(seconds)) spent_ += seconds;
}

void DraftPlanner::note_proposing(int32_t depth, double seconds) noexcept {
  note_looking(seconds);
  if (depth <= 0 || !is_time(seconds)) return;
  const double each = seconds / depth;
  proposing_ = proposing_ == 0 ? each : towards(proposing_, each);
}

void DraftPlanner::end(int32_t rows) noexcept {
  looked_ = rows;
  end_ = now();
}

// Updates the probability that the candidate's next row is accepted.
void DraftPlanner::advance(Candidate* candidate) const noexcept {
  const DraftJob& job = *candidate->slice->request->draft;
  const int32_t at = candidate->rows;
  const auto row = static_cast<size_t>(at) + 1;
  const int32_t grade = row < job.tree.grades().size() ? job.tree.grades()[row] : 0;
  const double all = acceptance_.chance(grade, at, acceptance_.chance(grade));
  candidate->chance *= job.record.acceptance.chance(grade, at, all);
}

void DraftPlanner::gather(std::span<StepPlan::Slice> slices, int32_t max_proposed) {
  candidates_.clear();
  order_.clear();
  for (StepPlan::Slice& slice : slices) {
    if (slice.drafts == 0) continue;
    const int32_t found = slice.request->draft->tree.rows() - 1;
    slice.drafts = std::min(slice.drafts, found > 0 ? found : max_proposed);
    if (slice.drafts == 0) continue;
    candidates_.push_back({&slice, found <= 0});
    advance(&candidates_.back());
  }
}

// Puts rows into order_, highest gain per cost first, and returns how many of them are best. A
// drafter takes as long for several sequences as for the one with the longest draft.
size_t DraftPlanner::best_rows() {
  // Row counts that were not measured are underestimated, so they are approached gradually; in
  // smaller increments at high counts, where each row certainly costs something.
  const int32_t known = steps_.max_known();
  const auto most =
      static_cast<size_t>(std::max(known + (known < 8 ? known : known / 4) - rows_, 1));
  const double tokens = rows_;
  const double alone = steps_.seconds(rows_);
  double best_rate = alone > 0 ? margin() * tokens / alone : 0;
  size_t best = 0;
  double brings = tokens;
  double pass = alone;
  int32_t depth = 0;
  while (order_.size() < most) {
    const double before = pass;
    pass = steps_.seconds(rows_ + static_cast<int32_t>(order_.size()) + 1);
    const double row = pass - before + 1e-3 * alone;  // a small minimum cost per row
    Candidate* next = nullptr;
    double max_worth = -1;
    for (Candidate& candidate : candidates_) {
      if (candidate.rows == candidate.slice->drafts) continue;
      const bool deeper = candidate.proposes && candidate.rows == depth;
      const double worth = candidate.chance / (row + (deeper ? proposing_ : 0));
      if (worth <= max_worth) continue;
      max_worth = worth;
      next = &candidate;
    }
    if (next == nullptr) break;
    order_.push_back(next);
    brings += next->chance;
    ++next->rows;
    if (next->proposes) depth = std::max(depth, next->rows);
    advance(next);
    const double takes = pass + depth * proposing_;
    const double rate = takes > 0 ? brings / takes : brings;
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = order_.size();
  }
  return best;
}

void DraftPlanner::limit(std::span<StepPlan::Slice> slices, int32_t max_proposed) {
  gather(slices, max_proposed);
  if (candidates_.empty()) return;
  const size_t best = best_rows();
  for (const Candidate& candidate : candidates_) {
    candidate.slice->request->draft->record.worth = kMargin / (margin() * rows_);
    candidate.slice->drafts = 0;
  }
  if (best == 0) return probe();
  for (size_t i = 0; i < best; ++i) ++order_[i]->slice->drafts;
  ++busy_;
  quiet_ = 0;
  probe_after_ = kFirstProbe;
}

void DraftPlanner::probe() noexcept {
  busy_ = 0;
  if (++quiet_ < probe_after_) return;
  quiet_ = 0;
  probe_after_ = std::min(2 * probe_after_, kLastProbe);
  const Candidate* const probing = order_.front();
  probing->slice->drafts = static_cast<int32_t>(
      std::min<std::ptrdiff_t>(std::count(order_.begin(), order_.end(), probing), kProbeRows));
}

}  // namespace gen::generate
