// SPDX-License-Identifier: Apache-2.0
// See draft_planner.h.
#include "generate/speculative/draft_planner.h"

#include <algorithm>
#include <chrono>

namespace gen::generate {

double DraftPlanner::now() const {
  if (policy_.clock) return policy_.clock();
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

void DraftPlanner::note_drafting(int32_t depth, double seconds) noexcept {
  if (depth <= 0 || seconds < 0) return;
  const double each = seconds / depth;
  drafting_ = drafting_ == 0 ? each : towards(drafting_, each);
}

void DraftPlanner::take_in(DraftRecord* record) noexcept {
  if (record->proposed == 0) return;
  record->acceptance.note(record->proposed, record->accepted);
  acceptance_.note(record->proposed, record->accepted);
  record->proposed = 0;
}

// The chance that one more of its rows is right.
void DraftPlanner::advance(Candidate* candidate) const noexcept {
  const double all = acceptance_.chance(candidate->rows, acceptance_.chance());
  candidate->chance *=
      candidate->part->request->draft->record.acceptance.chance(candidate->rows, all);
}

void DraftPlanner::limit(std::span<StepPlan::Part> parts) {
  candidates_.clear();
  order_.clear();
  // All that may be asked for, so that nothing is allocated while the same sequences run.
  candidates_.reserve(parts.size());
  size_t offered = 0;
  for (const StepPlan::Part& part : parts) offered += static_cast<size_t>(part.drafts);
  order_.reserve(offered);
  int32_t rows = 0;
  double tokens = 0;
  for (StepPlan::Part& part : parts) {
    rows += part.rows;
    if (part.rows == 1) ++tokens;  // the last row of a prompt brings one, too; it is none of ours
    if (part.drafts == 0) continue;
    take_in(&part.request->draft->record);
    candidates_.push_back({&part});
    advance(&candidates_.back());
  }
  if (candidates_.empty()) return;
  const auto none = [this] {
    for (const Candidate& candidate : candidates_) candidate.part->drafts = 0;
  };
  const bool known = passes_.knows(rows);
  if (!known || busy_ >= plain_after_) {
    plain_after_ = known ? std::min(2 * plain_after_, kPlainAfter) : kFirstPlain;
    busy_ = 0;
    return none();
  }
  // What has not been measured counts as if it cost nothing, so it is come to step by step.
  const auto most = static_cast<size_t>(2 * passes_.most_known() - rows);

  const double alone = passes_.seconds(rows);
  double best_rate = alone > 0 ? kMargin * tokens / alone : 0;
  size_t best = 0;
  double brings = tokens;
  int32_t depth = 0;
  for (;;) {
    Candidate* next = nullptr;
    for (Candidate& candidate : candidates_) {
      if (candidate.rows == candidate.part->drafts) continue;
      if (next == nullptr || candidate.chance > next->chance) next = &candidate;
    }
    if (next == nullptr || order_.size() >= most) break;
    order_.push_back(next->part);
    brings += next->chance;
    depth = std::max(depth, ++next->rows);
    advance(next);
    const auto taken = static_cast<int32_t>(order_.size());
    const double takes = passes_.seconds(rows + taken) + depth * drafting_;
    const double rate = takes > 0 ? brings / takes : brings;
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = order_.size();
  }
  none();
  if (best > 0 && busy_ == kDeepAfter) best = order_.size();
  for (size_t i = 0; i < best; ++i) ++order_[i]->drafts;
  if (best > 0) {
    ++busy_;
    quiet_ = 0;
    probe_after_ = kFirstProbe;
    return;
  }
  busy_ = 0;
  if (++quiet_ < probe_after_) return;
  quiet_ = 0;
  probe_after_ = std::min(2 * probe_after_, kLastProbe);
  StepPlan::Part& probing = *order_.front();
  probing.drafts = static_cast<int32_t>(
      std::min<std::ptrdiff_t>(std::count(order_.begin(), order_.end(), &probing), kProbeRows));
}

}  // namespace gen::generate
