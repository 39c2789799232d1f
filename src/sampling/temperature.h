// SPDX-License-Identifier: Apache-2.0
// The stages temperature and top-k: from a row of logits to weighted candidates.
#pragma once

#include <span>
#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Fills `candidates`, ascending by token, with what is above -inf and at least `bar`; weight =
/// exp((logit - max) / temperature), where `max` is the largest logit and temperature > 0.
void weigh(std::span<const float> logits, float max, double temperature, float bar,
           std::vector<Candidate>* candidates);

}  // namespace gen::sampling
