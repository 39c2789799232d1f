// SPDX-License-Identifier: Apache-2.0
// NgramLookup: prompt lookup. If the last tokens of a text occur earlier in it, the tokens after
// that place are the draft. It works for answers that quote their prompt, edited source code and
// lists.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "generate/draft/drafter.h"

namespace gen::generate {

class NgramLookup final : public Drafter {
 public:
  /// Searches for the last `ngram` tokens, then for fewer, down to 2 (1 if `ngram` is 1). Drafts
  /// `most` tokens at a time. The longest match wins, then the newest.
  NgramLookup(int32_t ngram, int32_t most) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override { return most_; }
  [[nodiscard]] int32_t max_proposed() const noexcept override { return 0; }
  [[nodiscard]] const char* name(const DraftState&) const noexcept override { return "lookup"; }
  std::unique_ptr<DraftState> begin() override;
  void look_up(std::span<DraftJob* const> jobs) override;

 private:
  const int32_t ngram_;
  const int32_t most_;
};

}  // namespace gen::generate
