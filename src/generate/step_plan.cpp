// SPDX-License-Identifier: Apache-2.0
// See step_plan.h.
#include "generate/step_plan.h"

namespace gen::generate {

void plan_step(std::span<StepRequest* const> waiting, const StepLimits& limits, StepPlan* plan) {
  plan->requests.clear();
  plan->rows = 0;
  if (waiting.empty()) return;
  const auto take = [&](StepRequest* request) {
    plan->requests.push_back(request);
    plan->rows += request->rows();
  };
  const auto fits = [&](const StepRequest* request) {
    return static_cast<int32_t>(plan->requests.size()) < limits.max_sequences &&
           request->rows() <= limits.max_rows - plan->rows;
  };
  take(waiting.front());
  for (const bool decoding : {true, false}) {
    for (StepRequest* request : waiting.subspan(1)) {
      if ((request->rows() == 1) == decoding && fits(request)) take(request);
    }
  }
}

}  // namespace gen::generate
