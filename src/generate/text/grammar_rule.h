// SPDX-License-Identifier: Apache-2.0
// GrammarRule: where the text of one call stands in its grammar, and which tokens may come next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "grammar/matcher/matcher.h"
#include "sampling/token_mask.h"

namespace gen::tokenizer {
class Tokenizer;
}  // namespace gen::tokenizer

namespace gen::generate {

struct CallParams;

/// Of a token that may come next: it ends the text that stands there, and is no part of it. What
/// the grammar asks for by name is a part of the text, and a text that is no member cannot end.
bool ends_text(const grammar::Matcher& matcher, std::span<const int32_t> stops, int32_t token);
/// Of the tokens that may come behind a matcher's text as far as it knows (`words`), makes those
/// that may come in a call whose texts end with `stops`.
void allow_stops(const grammar::Matcher& matcher, std::span<const int32_t> stops,
                 std::span<uint64_t> words);

/// Threads: one at a time.
class GrammarRule {
 public:
  /// Null where `params` have no grammar. kGrammar for one that names tokens that the tokenizer
  /// lacks; kInvalidArgument where there is no tokenizer, and for a matcher over another one;
  /// kState for one that another process has made.
  /// `tokenizer` may be null.
  static Result<std::unique_ptr<GrammarRule>> begin(const CallParams& params,
                                                    const tokenizer::Tokenizer* tokenizer);
  explicit GrammarRule(grammar::Matcher matcher) : matcher_(std::move(matcher)) {}
  /// The tokens that end the call's text; outlive it. None until then.
  void set_stops(std::span<const int32_t> stops) noexcept { stops_ = stops; }

  /// Makes the mask of the next token, of `left` that may come, unless that has been done; what
  /// makes it early saves the time later. kGrammar where it takes more than the grammar's limits.
  Status prepare(int32_t left);
  /// For after prepare(). No bit set: nothing can come next.
  [[nodiscard]] sampling::TokenMask mask() const noexcept { return {bits_}; }
  [[nodiscard]] bool allows_any() const noexcept { return allows_any_; }
  /// For after prepare(): those that end the text here.
  [[nodiscard]] std::span<const int32_t> ends() const noexcept { return ends_; }
  /// Walks on by a token that the mask allows; false where it ends the text.
  Result<bool> accept(int32_t token);
  /// A matcher of its own in the same place.
  [[nodiscard]] grammar::Matcher fork() const { return matcher_.fork(); }

  /// The text is a member.
  [[nodiscard]] bool is_complete() const noexcept { return matcher_.is_complete(); }
  /// And nothing can follow, or may where the text is to fit and `left` more tokens may come.
  [[nodiscard]] bool is_over(int32_t left) const noexcept {
    return matcher_.is_finished() || (fits_ && left <= 0 && matcher_.is_complete());
  }

 private:
  grammar::Matcher matcher_;
  std::span<const int32_t> stops_;
  std::vector<int32_t> ends_;
  bool fits_ = false;  // only ways that end within what is left
  bool prepared_ = false;
  bool allows_any_ = false;
  std::vector<uint64_t> words_;
  std::vector<uint32_t> bits_;
};

}  // namespace gen::generate
