// SPDX-License-Identifier: Apache-2.0
// GrammarRule: the state of one call's text in its grammar, and the tokens that may come next.
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

/// Whether an allowed token ends the text here without being a part of it. A token that the grammar
/// asks for by name is a part of the text, and an incomplete text cannot end.
bool ends_text(const grammar::Matcher& matcher, std::span<const int32_t> stops, int32_t token);
/// Turns `words`, the tokens that the matcher allows, into the tokens that a call with these stop
/// tokens allows.
void allow_stops(const grammar::Matcher& matcher, std::span<const int32_t> stops,
                 std::span<uint64_t> words);

/// Threads: one at a time.
class GrammarRule {
 public:
  /// Null if `params` have no grammar. kGrammar for a grammar that names tokens that the tokenizer
  /// lacks; kInvalidArgument without a tokenizer or for a matcher of another one; kState for a
  /// grammar made by another process. `tokenizer` may be null.
  static Result<std::unique_ptr<GrammarRule>> begin(const CallParams& params,
                                                    const tokenizer::Tokenizer* tokenizer);
  explicit GrammarRule(grammar::Matcher matcher) : matcher_(std::move(matcher)) {}
  /// Sets the tokens that end the call's text; none before. They must outlive the object.
  void set_stops(std::span<const int32_t> stops) noexcept { stops_ = stops; }

  /// Computes the mask of the next token, unless it is computed already; `left` tokens may still
  /// come. Calling it early saves time later. kGrammar if it exceeds the grammar's limits.
  Status prepare(int32_t left);
  /// Call it after prepare(). No bit set: no token is allowed.
  [[nodiscard]] sampling::TokenMask mask() const noexcept { return {bits_}; }
  [[nodiscard]] bool allows_any() const noexcept { return allows_any_; }
  /// Call it after prepare(): the tokens that end the text here.
  [[nodiscard]] std::span<const int32_t> ends() const noexcept { return ends_; }
  /// Advances by an allowed token; false if it ends the text.
  Result<bool> accept(int32_t token);
  /// A new matcher in the same state.
  [[nodiscard]] grammar::Matcher fork() const { return matcher_.fork(); }

  /// The text is complete under the grammar.
  [[nodiscard]] bool is_complete() const noexcept { return matcher_.is_complete(); }
  /// The text is complete and nothing can follow, or nothing that would fit into `left` tokens if
  /// the text has to fit and the call does not name its limits.
  [[nodiscard]] bool is_over(int32_t left) const noexcept {
    return matcher_.is_finished() ||
           (fits_ && !names_limits_ && left <= 0 && matcher_.is_complete());
  }

 private:
  grammar::Matcher matcher_;
  std::span<const int32_t> stops_;
  std::vector<int32_t> ends_;
  bool fits_ = false;  // only tokens after which the text can end within `left`
  bool names_limits_ = false;
  bool prepared_ = false;
  bool allows_any_ = false;
  std::vector<uint64_t> words_;
  std::vector<uint32_t> bits_;
};

}  // namespace gen::generate
