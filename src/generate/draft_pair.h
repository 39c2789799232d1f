// SPDX-License-Identifier: Apache-2.0
// DraftPair: guessing and judging as steps of their own, for programs that write the loop. A
// draft model says how tokens may go on; a target model says how many of these it says, too. Both
// keep their caches between calls, and run what a text has new.
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

/// Greedy guesses with their log-probabilities.
struct Guesses {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;  // log-softmax of the draft model's logits
};

/// What the target says of guesses: the first `accepted` are its own, then it says `correction`.
struct Verdict {
  int32_t accepted = 0;
  int32_t correction = -1;
};

/// Threads: one call at a time; a second one is kBusy.
class DraftPair {
 public:
  static constexpr int32_t kDefaultLength = 4;

  /// `target.model` may be null: then nothing can be judged. Drafters in the options are not used.
  /// Errors as common_vocabulary and create_generator.
  static Result<std::shared_ptr<DraftPair>> create(const ModelInUse& draft,
                                                   const ModelInUse& target,
                                                   const CacheChoice& caches,
                                                   GeneratorOptions draft_options,
                                                   GeneratorOptions target_options);
  /// The target's first layers draft for it; outside [1, all) half of them do, and one at least.
  /// Errors as Model::first_layers.
  static Result<std::shared_ptr<DraftPair>> create_self(const ModelInUse& target, int32_t layers,
                                                        const CacheChoice& caches,
                                                        const GeneratorOptions& options);

  /// Layers that draft.
  [[nodiscard]] int32_t depth() const noexcept;
  /// At most `length` tokens that the draft model says after `text`, up to and with one that ends
  /// a text, or up to one that is not in the target's vocabulary. kInvalidArgument for an empty
  /// text or a length outside [1, kMaxDraftRows); errors of Session::append and generating calls.
  Result<Guesses> generate(std::span<const int32_t> text, int32_t length);
  /// Judges guesses at what follows `text`, the first included; with none it says what comes next.
  /// kState without a target; kOutOfRange for a guess outside its vocabulary; else as generate().
  Result<Verdict> verify(std::span<const int32_t> text, std::span<const int32_t> guesses);
  /// The share of one proposal of `length` (0 and less: kDefaultLength) that is accepted.
  Result<double> acceptance_rate(std::span<const int32_t> text, int32_t length);

 private:
  class Given;
  DraftPair() = default;
  Result<Guesses> generate_held(std::span<const int32_t> text, int32_t length);
  Result<Verdict> verify_held(std::span<const int32_t> text, std::span<const int32_t> guesses);

  std::shared_ptr<Session> draft_;
  std::shared_ptr<Session> target_;                      // null: none
  std::shared_ptr<Given> given_;                         // the target's drafter
  int32_t vocab_ = std::numeric_limits<int32_t>::max();  // tokens that both have, if there are two
  InUseFlag in_use_;
};

}  // namespace gen::generate
