// SPDX-License-Identifier: Apache-2.0
// The stage top-n-sigma: logits more than n standard deviations below the best one are noise (Tang,
// Liu, Xu, Liu, "Top-nσ: not all logits are you need", 2024).
#pragma once

#include <span>

namespace gen::sampling {

/// Standard deviation of the logits above -inf, 0 if there are fewer than two. No NaN, no +inf.
/// Sums are in a fixed order: the same on every machine.
double logit_deviation(std::span<const float> logits) noexcept;

/// The smallest logit that is kept with a best one of `max`: max - n * deviation. n > 0. Never
/// above `max`.
float top_n_sigma_bar(double n, double deviation, float max) noexcept;

}  // namespace gen::sampling
