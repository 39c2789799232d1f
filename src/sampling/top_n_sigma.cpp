// SPDX-License-Identifier: Apache-2.0
// See top_n_sigma.h.
#include "sampling/top_n_sigma.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace gen::sampling {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Lanes, so that the order of summation is fixed here and not by the CPU.
template <typename F>
double sum(std::span<const float> logits, const F& of) noexcept {
  constexpr size_t kSums = 8;
  double lanes[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= logits.size(); i += kSums) {
    for (size_t k = 0; k < kSums; ++k) {
      const float logit = logits[i + k];
      lanes[k] += logit == kNever ? 0.0 : of(static_cast<double>(logit));
    }
  }
  for (; i < logits.size(); ++i) {
    if (logits[i] != kNever) lanes[i % kSums] += of(static_cast<double>(logits[i]));
  }
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace

double logit_deviation(std::span<const float> logits) noexcept {
  const double count = sum(logits, [](double) { return 1.0; });
  if (count < 2.0) return 0.0;
  const double mean = sum(logits, [](double x) { return x; }) / count;
  const double squares = sum(logits, [&](double x) { return (x - mean) * (x - mean); });
  return std::sqrt(squares / count);
}

float top_n_sigma_bar(double n, double deviation, float max) noexcept {
  const double bar = static_cast<double>(max) - n * deviation;
  if (!(bar > static_cast<double>(std::numeric_limits<float>::lowest()))) return kNever;
  const auto rounded = static_cast<float>(bar);
  // A logit is at least `bar` if and only if it is at least the next float from there on.
  if (static_cast<double>(rounded) >= bar) return rounded;
  return std::nextafter(rounded, std::numeric_limits<float>::infinity());
}

}  // namespace gen::sampling
