// SPDX-License-Identifier: Apache-2.0
// TokenPicker: samples the tokens of a call from rows of logits. A draw depends only on the row,
// its mask, the earlier tokens and their number, so rows of one step give the tokens that they
// would give one by one. This includes the state of mirostat and DRY: rows are picked from in the
// order of the text, and a row with a rejected draft is never picked from. The caller's logits hook
// runs before the chain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "generate/request/call_params.h"
#include "generate/text/dry_breaks.h"
#include "sampling/chain.h"
#include "sampling/dry.h"

namespace gen::generate {

/// Threads: one at a time.
class TokenPicker {
 public:
  /// Input besides a row of logits. `held` are all tokens of the session, the last `said` of them
  /// from this call; `stops` are the tokens that end the call's text; `mask` may be null.
  struct At {
    std::span<const int32_t> held;
    std::span<const int32_t> said;
    std::span<const int32_t> stops = {};
    const sampling::TokenMask* mask = nullptr;
    const sampling::Proposal* proposal = nullptr;  // draft to accept or replace; may be null
  };

  /// Both must outlive it. `params` must have passed check_vocab; `tokenizer` may be null.
  TokenPicker(const CallParams& params, const tokenizer::Tokenizer* tokenizer);

  /// Samples the token after `at.held`; the next pick must be for the text continued by it.
  /// `logits`, [V], are overwritten. The choice is valid until the next pick. Errors as
  /// sampling::Chain::sample.
  Result<sampling::Choice> pick(std::span<float> logits, const At& at);

  /// What pick_short() needs of a row, `masked` if rows have masks; k is 0 if only pick() will do.
  [[nodiscard]] sampling::ShortRowNeed short_row(bool masked) const noexcept {
    if (params_.edit_logits != nullptr) return {};
    return chain_.short_row(edits(), masked);
  }
  /// Whether anything besides a mask changes logits.
  [[nodiscard]] bool edits() const noexcept {
    return chain_.edits() || breaks_.has_value() || params_.stops.min_new_tokens > 0;
  }
  /// Position of the draw for the token after `at.said`, as a share of the total mass.
  [[nodiscard]] double draw_place(const At& at) const noexcept {
    return chain_.draw_place(at.said.size());
  }
  /// Lists the tokens whose logits pick_short() needs separately after `at.held`.
  Status list_edited(const At& at, size_t vocab, std::vector<int32_t>* tokens);
  /// As pick(), for a row of `n` logits of which the model returned the largest and those listed by
  /// list_edited(). Token -1, with nothing changed, if these do not decide the choice.
  Result<sampling::Choice> pick_short(const sampling::ShortRow& row, size_t n, const At& at);

 private:
  [[nodiscard]] std::span<const int32_t> counted(const At& at) const noexcept {
    return params_.sampling.penalize_prompt ? at.held : at.said;
  }
  Result<sampling::Further> further(const At& at, size_t vocab);
  Result<std::span<const sampling::TokenPenalty>> repetitions(std::span<const int32_t> held,
                                                              size_t vocab);

  const CallParams& params_;
  sampling::Chain chain_;
  std::optional<DryBreaks> breaks_;  // empty without DRY
  sampling::Dry dry_;
};

}  // namespace gen::generate
