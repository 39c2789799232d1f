// SPDX-License-Identifier: Apache-2.0
// The stage temperature: from logits to weights.
#pragma once

#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Gives every candidate the weight exp((logit - max) / temperature), where `max` is the largest
/// logit and temperature > 0.
void weigh(float max, double temperature, std::span<Candidate> candidates) noexcept;

}  // namespace gen::sampling
