// SPDX-License-Identifier: Apache-2.0
// NgramLookup: prompt lookup. Where the last tokens of a text stand in it already, what came then
// is the guess: answers that quote their prompt, edited source code, lists.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "generate/draft/drafter.h"

namespace gen::generate {

class NgramLookup final : public Drafter {
 public:
  /// Looks for the last `ngram` tokens, and for fewer, but not for less than 2 unless `ngram` is 1;
  /// guesses `most` tokens at a time. The longest agreement counts, then the newest.
  NgramLookup(int32_t ngram, int32_t most) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override { return most_; }
  [[nodiscard]] int32_t max_proposed() const noexcept override { return 0; }
  std::unique_ptr<DraftState> begin() override;
  void look_up(std::span<DraftJob* const> jobs) override;

 private:
  const int32_t ngram_;
  const int32_t most_;
};

}  // namespace gen::generate
