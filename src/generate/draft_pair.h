// SPDX-License-Identifier: Apache-2.0
// DraftPair: drafting and verifying as separate calls, for programs that write their own loop. A
// draft model proposes tokens; a target model accepts a prefix of them. Both keep their caches
// between calls and evaluate only what is new in a text.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/in_use.h"
#include "base/status.h"
#include "generate/cache_choice.h"
#include "generate/draft/drafter.h"
#include "generate/loop/generator.h"

namespace gen::generate {

/// Greedy draft tokens with their log-probabilities.
struct Guesses {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;  // log-softmax of the draft model's logits
};

/// The target's answer: it accepts the first `accepted` tokens, its next token is `correction`.
struct Verdict {
  int32_t accepted = 0;
  int32_t correction = -1;
};

/// Threads: one call at a time; a concurrent call gets kBusy.
class DraftPair {
 public:
  static constexpr int32_t kDefaultLength = 4;

  /// `target.model` may be null: then verify() is not available. Drafters in the options are
  /// ignored. Errors as common_vocabulary, check_draft_model and create_generator.
  static Result<std::shared_ptr<DraftPair>> create(const ModelInUse& draft,
                                                   const ModelInUse& target,
                                                   const CacheChoice& caches,
                                                   GeneratorOptions draft_options,
                                                   GeneratorOptions target_options);
  /// The target's first `layers` layers draft for it. Outside [1, all) half of the layers do, at
  /// least one. Errors as Model::first_layers.
  static Result<std::shared_ptr<DraftPair>> create_self(const ModelInUse& target, int32_t layers,
                                                        const CacheChoice& caches,
                                                        const GeneratorOptions& options);

  /// Number of layers that draft.
  [[nodiscard]] int32_t depth() const noexcept;
  /// Up to `length` tokens that the draft model generates after `text`, ending with a token that
  /// ends a text, or before one outside the target's vocabulary. kInvalidArgument for an empty text
  /// or a length outside [1, kMaxDraftRows); errors of Session::append and of generating calls.
  Result<Guesses> generate(std::span<const int32_t> text, int32_t length);
  /// Verifies draft tokens after `text`; without any it gives the target's next token. kState
  /// without a target; kOutOfRange for a token outside its vocabulary; otherwise as generate().
  Result<Verdict> verify(std::span<const int32_t> text, std::span<const int32_t> guesses);
  /// The accepted share of one draft of `length` tokens (<= 0: kDefaultLength).
  Result<double> acceptance_rate(std::span<const int32_t> text, int32_t length);

 private:
  class Given;
  DraftPair() = default;
  Result<Guesses> generate_held(std::span<const int32_t> text, int32_t length);
  Result<Verdict> verify_held(std::span<const int32_t> text, std::span<const int32_t> guesses);

  std::shared_ptr<Session> draft_;
  std::shared_ptr<Session> target_;                      // null: none
  std::shared_ptr<Given> given_;                         // the target's drafter
  int32_t vocab_ = std::numeric_limits<int32_t>::max();  // shared vocabulary, if there are two
  InUseFlag in_use_;
};

}  // namespace gen::generate
