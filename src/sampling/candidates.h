// SPDX-License-Identifier: Apache-2.0
// The remaining tokens, between the stages of the chain.
#pragma once

#include <cstdint>
#include <vector>

namespace gen::sampling {

/// `weight` is exp((logit - max) / temperature): the best token has weight 1, and no stage needs
/// normalised probabilities.
struct Candidate {
  int32_t token = 0;
  float logit = 0.0F;
  double weight = 0.0;
};

/// Best first, ties by lower id: a total order, so sorting and selecting give the same candidates
/// in every standard library.
[[nodiscard]] inline bool more_probable(const Candidate& a, const Candidate& b) noexcept {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

}  // namespace gen::sampling
