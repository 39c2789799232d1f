// SPDX-License-Identifier: Apache-2.0
// Guesser: chooses the tokens of drafts that a network makes, one after another. It chooses the
// best one, or draws as the call does, among those that the job's grammar allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "generate/draft/drafter.h"

namespace gen::generate {

/// Proposals during which a session is skipped after a failure to allocate memory for it.
constexpr int32_t kRestAfterFailure = 64;

/// A job whose draft is being made.
struct Guessing {
  DraftJob* job = nullptr;
  size_t accepted = 0;  // tokens that its matcher accepted for the draft
  bool logits = false;  // it needs logits: there is a grammar, or the call draws
  bool ends = false;    // it drafts nothing more
};

/// Scratch memory for one job at a time. Threads: one at a time.
class Guesser {
 public:
  /// Tokens are those below `vocab`.
  explicit Guesser(int32_t vocab) noexcept : vocab_(vocab) {}

  static bool needs_logits(const DraftJob& job) noexcept {
    return job.matcher != nullptr || job.draw != nullptr;
  }
  /// Adds the token after the last one of the chain, from the best token of the row, or from logits
  /// [at least vocab], which are overwritten. Sets `ends` if there is none, or if nothing can
  /// follow it. Tokens that matchers accepted must be taken back, see GiveBack. std::bad_alloc.
  void add_best(Guessing* of, int32_t best);
  void add(Guessing* of, std::span<float> logits);

 private:
  int32_t pick(const DraftJob& job, std::span<float> logits);
  static void add_token(Guessing* of, int32_t token);

  const int32_t vocab_;
  std::vector<uint64_t> mask_;
  std::vector<uint32_t> bits_;  // the same in halves
};

/// Takes back what a matcher accepted for a draft.
void give_back(const Guessing& of) noexcept;

}  // namespace gen::generate
