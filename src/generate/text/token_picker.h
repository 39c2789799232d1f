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
#include "generate/request/call_params.h"
#include "generate/text/dry_breaks.h"
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

  /// What of a row pick_short() needs, `masked` where there are masks; nothing where only pick()
  /// will do.
  [[nodiscard]] sampling::ShortRowNeed short_row(bool masked) const noexcept {
    if (params_.edit_logits != nullptr) return {};
    return chain_.short_row(edits(), masked);
  }
  /// Whether some logits are ever changed, other than by a mask.
  [[nodiscard]] bool edits() const noexcept {
    return chain_.edits() || breaks_.has_value() || params_.stops.min_new_tokens > 0;
  }
  /// Where the draw of the token after `at.said` lies, as a share of all mass.
  [[nodiscard]] double draw_place(const At& at) const noexcept {
    return chain_.draw_place(at.said.size());
  }
  /// The tokens that pick_short() wants aside after `at.held`.
  Status list_edited(const At& at, size_t vocab, std::vector<int32_t>* tokens);
  /// As pick(), for a row of `n` logits whose largest the model has found, and those of what
  /// list_edited() has said. Token -1, and nothing has changed, where they do not decide it.
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
  std::optional<DryBreaks> breaks_;  // none without DRY
  sampling::Dry dry_;
};

}  // namespace gen::generate
