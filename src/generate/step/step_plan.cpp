// SPDX-License-Identifier: Apache-2.0
// See step_plan.h.
#include "generate/step/step_plan.h"

#include <algorithm>
#include <limits>

namespace gen::generate {
namespace {

int32_t rank(const StepRequest& request, int32_t max_passed_over) noexcept {
  return request.passed_over >= max_passed_over ? std::numeric_limits<int32_t>::max()
                                                : request.urgency.priority;
}

// Sorts by rank, the oldest first among equals. Insertion sort is stable and does not allocate; the
// input is nearly always sorted already.
void sort_by_rank(std::vector<StepRequest*>* order, int32_t most) {
  for (size_t i = 1; i < order->size(); ++i) {
    StepRequest* const moving = (*order)[i];
    size_t at = i;
    for (; at > 0 && rank(*(*order)[at - 1], most) < rank(*moving, most); --at) {
      (*order)[at] = (*order)[at - 1];
    }
    (*order)[at] = moving;
  }
}

}  // namespace

void plan_step(std::span<StepRequest* const> waiting, const StepLimits& limits, StepPlan* plan) {
  plan->slices.clear();
  plan->order.assign(waiting.begin(), waiting.end());
  if (waiting.empty()) return;
  sort_by_rank(&plan->order, limits.max_passed_over);
  const StepRequest* const first = plan->order.front();

  int32_t sequences = limits.max_sequences;
  int32_t rows = limits.max_rows;
  const bool prompt_first = first->rows() > 1;
  // A prompt that is first keeps one place and one row.
  if (prompt_first) {
    --sequences;
    --rows;
  }
  for (StepRequest* request : plan->order) {
    if (request->rows() > 1 || sequences == 0 || rows == 0) continue;
    plan->slices.push_back({request, 1, 0});
    --sequences;
    --rows;
  }
  if (prompt_first) {
    ++sequences;
    ++rows;
  }
  int32_t left = rows;
  rows = std::min(rows, std::max(limits.prompt_rows, 1));
  for (StepRequest* request : plan->order) {
    if (request->rows() <= 1 || sequences == 0 || rows == 0) continue;
    const int32_t taken = std::min(request->rows(), rows);
    plan->slices.push_back({request, taken, 0});
    --sequences;
    rows -= taken;
    left -= taken;
  }
  for (StepPlan::Slice& slice : plan->slices) {
    if (slice.request->draft == nullptr) continue;
    slice.drafts = std::clamp(slice.request->draft->most, 0, left);
    left -= slice.drafts;
  }
}

}  // namespace gen::generate
