// SPDX-License-Identifier: Apache-2.0
// TokenPicker: draws the tokens of a call from rows of logits. A draw depends on the row, its mask,
// what was said before and how many tokens that are, and on nothing else: rows that a step ran
// together give the tokens that they give one by one. A hook that edits logits comes before the
// chain.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "sampling/chain.h"

namespace gen::generate {

/// Threads: one at a time.
class TokenPicker {
 public:
  /// `params` must outlive it and have passed check_vocab.
  explicit TokenPicker(const sampling::SamplingParams& params) : params_(params), chain_(params) {}

  /// Draws the token after `held`, all that the session holds, of which `said` is from this call.
  /// `logits`, [V], are overwritten; `mask` may be null. The choice is valid until the next one.
  /// Errors as sampling::Chain::sample.
  Result<sampling::Choice> pick(std::span<float> logits, std::span<const int32_t> held,
                                std::span<const int32_t> said,
                                const sampling::TokenMask* mask = nullptr) {
    const auto row = static_cast<int64_t>(held.size()) - 1;
    return chain_.sample(logits, params_.penalize_prompt ? held : said, said.size(), row, mask);
  }

  /// Whether best() will do for pick() without a mask.
  [[nodiscard]] bool only_best() const noexcept { return chain_.only_best(); }
  /// As pick(), for a row of `n` logits whose largest the model has found.
  static Result<sampling::Choice> best(int32_t token, float logit, size_t n,
                                       std::span<const int32_t> held) {
    return sampling::Chain::best(token, logit, n, static_cast<int64_t>(held.size()) - 1);
  }

 private:
  const sampling::SamplingParams& params_;
  sampling::Chain chain_;
};

}  // namespace gen::generate
