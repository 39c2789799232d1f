// SPDX-License-Identifier: Apache-2.0
// TokenPicker: draws the tokens of a call from rows of logits. A draw depends on the row, its mask,
// what was said before and how many tokens that are, and on nothing else: rows that a step ran
// together give the tokens that they give one by one. What mirostat and DRY keep from token to
// token holds to that, too, as rows are picked from in the order of the text and each pick is said:
// a row that was guessed wrong is never picked from. A hook that edits logits comes before the
// chain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "generate/call_params.h"
#include "generate/dry_breaks.h"
#include "sampling/chain.h"
#include "sampling/dry.h"

namespace gen::generate {

/// Threads: one at a time.
class TokenPicker {
 public:
  /// What there is beside a row of logits. `held` is all that the session holds, of which `said` is
  /// from this call; `stops` are the tokens that end the call's text; `mask` may be null.
  struct At {
    std::span<const int32_t> held;
    std::span<const int32_t> said;
    std::span<const int32_t> stops = {};
    const sampling::TokenMask* mask = nullptr;
    const sampling::Proposal* proposal = nullptr;  // that a draw keeps or replaces; may be null
  };

  /// Both must outlive it; `params` must have passed check_vocab, `tokenizer` may be null.
  TokenPicker(const CallParams& params, const tokenizer::Tokenizer* tokenizer);

  /// Draws the token after `at.held`; the next pick is for the text that goes on with it. `logits`,
  /// [V], are overwritten. The choice is valid until the next one. Errors as
  /// sampling::Chain::sample.
  Result<sampling::Choice> pick(std::span<float> logits, const At& at);

  /// Whether best() will do for pick() without a mask.
  [[nodiscard]] bool only_best() const noexcept { return chain_.only_best() && only_logits(); }
  /// As pick(), for a row of `n` logits whose largest the model has found.
  static Result<sampling::Choice> best(int32_t token, float logit, size_t n,
                                       std::span<const int32_t> held) {
    return sampling::Chain::best(token, logit, n, static_cast<int64_t>(held.size()) - 1);
  }

  /// Whether pick_short() will do for pick() without a mask, where the row decides() it.
  [[nodiscard]] bool short_row_will_do() const noexcept {
    return chain_.short_row_will_do() && only_logits();
  }
  [[nodiscard]] bool decides(const sampling::ShortRow& row) const noexcept {
    return chain_.decides(row);
  }
  /// As pick(), for a row of `n` logits whose largest the model has found.
  Result<sampling::Choice> pick_short(const sampling::ShortRow& row, size_t n, const At& at);

 private:
  /// Nothing comes before the chain or further into it.
  [[nodiscard]] bool only_logits() const noexcept {
    return !breaks_.has_value() && params_.stops.min_new_tokens <= 0 &&
           params_.edit_logits == nullptr;
  }
  Result<std::span<const sampling::TokenPenalty>> repetitions(std::span<const int32_t> held,
                                                              size_t vocab);

  const CallParams& params_;
  sampling::Chain chain_;
  std::optional<DryBreaks> breaks_;  // none without DRY
  sampling::Dry dry_;
};

}  // namespace gen::generate
