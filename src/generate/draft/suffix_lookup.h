// SPDX-License-Identifier: Apache-2.0
// SuffixLookup: suffix decoding. The places where the last tokens of a text occur earlier, in it
// and in recently ended texts of other sessions, vote on the next token; only the longest matches
// vote. A draft ends where the votes split, so texts that are only similar cost little. If the last
// tokens are new (a value in a list of records, a renamed variable), the places that match before
// these tokens vote, whatever short sequence they have instead.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "generate/draft/drafter.h"
#include "generate/draft/text_index.h"

namespace gen::generate {

class SuffixLookup final : public Drafter {
 public:
  struct Options {
    int32_t most = 8;           // draft tokens at a time
    int32_t depth = 24;         // longest match, in tokens
    int32_t least_depth = 2;    // shortest match; a shorter one is chance
    double least_share = 0.25;  // least share of the votes, for all tokens of a draft
    int32_t gap = 3;            // most new tokens after a match; 0: no lookup across gaps
    /// Tokens of ended texts that are kept, over all sessions; 0: none. The speed of one session
    /// can then reveal to its user what another session's text was like.
    int32_t recent = 0;
  };
  explicit SuffixLookup(const Options& options) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override { return options_.most; }
  [[nodiscard]] int32_t max_proposed() const noexcept override { return 0; }
  [[nodiscard]] const char* name(const DraftState&) const noexcept override { return "suffix"; }
  std::unique_ptr<DraftState> begin() override;
  void look_up(std::span<DraftJob* const> jobs) override;

  /// Bytes used for the texts that have ended.
  [[nodiscard]] size_t memory() const;

 private:
  struct State;
  class Voters;
  void guess(DraftJob* job);
  void guess_behind_gap(DraftJob* job) const;
  void remember(std::span<const int32_t> text) noexcept;

  const Options options_;
  mutable std::mutex mutex_;
  TextIndex recent_;  // guarded
};

}  // namespace gen::generate
