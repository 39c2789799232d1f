// SPDX-License-Identifier: Apache-2.0
// SuffixLookup: suffix decoding. The places where the last tokens of a text stand already, in it
// and in texts of other sessions that ended lately, vote on what comes next, the longest agreements
// alone; a guess ends where they part, so texts that only look alike cost little. Where the last
// tokens are new, a value in a list of records or a name that was changed, those places of the text
// vote where it agrees before them and then had something else, of any few tokens.
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
    int32_t most = 8;           // tokens of a guess
    int32_t depth = 24;         // tokens of an agreement that count
    int32_t least_depth = 2;    // fewer are chance
    double least_share = 0.25;  // of the votes, for all tokens of a guess up to one
    int32_t gap = 3;            // new tokens behind an agreement, at most; 0: none
    /// Tokens of ended texts that are kept, of all sessions together; 0: none. How quickly a
    /// session gets on may then tell another what the text of a third was like.
    int32_t recent = 0;
  };
  explicit SuffixLookup(const Options& options) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override { return options_.most; }
  [[nodiscard]] int32_t max_proposed() const noexcept override { return 0; }
  std::unique_ptr<DraftState> begin() override;
  void look_up(std::span<DraftJob* const> jobs) override;

  /// Bytes of the texts that have ended.
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
