// SPDX-License-Identifier: Apache-2.0
// Chain: from a row of logits to a token, in the fixed order bias, mask, penalties (DRY last),
// barred tokens, greedy?, top-n-sigma, temperature, top-k, typical-p, top-p, min-p, XTC, mirostat,
// draw; each stage is a file of this room. The result depends only on the logits, the parameters,
// the mask, the tokens so far, the seed and the step: not on the machine, the standard library,
// threads or batches. Only mirostat has state, from the draws of this text: the chain holds it, so
// steps must come in order, each once, and every drawn token must become part of the text.
//
// Differences from llama.cpp, which has the same stages: there the temperature comes last by
// default, so that the filters see probabilities at temperature 1; the deviation of top-n-sigma is
// that of the edited logits, here of the model's own, because a large penalty on one token says
// nothing about the others; a grammar is checked after the draw; and mirostat disables every other
// filter, while here those that are set act.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sampling/acceptance.h"
#include "sampling/candidates.h"
#include "sampling/logprobs.h"
#include "sampling/mirostat.h"
#include "sampling/params.h"
#include "sampling/penalties.h"
#include "sampling/row_peaks.h"
#include "sampling/short_row.h"
#include "sampling/streams.h"
#include "sampling/token_mask.h"

namespace gen::sampling {

/// A sampled token. `top` is valid until the next sample(); it and `logprob` are present if the
/// parameters ask for log-probabilities.
struct Choice {
  int32_t token = -1;
  float logprob = 0.0F;  // log-softmax of the raw logits, else 0
  std::span<const TokenLogprob> top;
};

/// Optional inputs of a step besides logits and parameters.
struct Further {
  std::span<const TokenPenalty> penalties = {};  // subtracted after the other penalties: DRY's
  std::span<const int32_t> barred = {};          // not drawn while any other token is possible
  /// A proposal to accept or replace (acceptance.h) instead of drawing; null: none.
  const Proposal* proposal = nullptr;
  uint64_t draw_stream = kDrawStream;  // of draws without gumbel
  [[nodiscard]] bool any() const noexcept { return !penalties.empty() || !barred.empty(); }
};

/// Owns the scratch of one request, so that sampling allocates nothing once warm.
/// Threads: one at a time.
class Chain {
 public:
  /// `params` must outlive the chain and have passed check_vocab.
  explicit Chain(const SamplingParams& params) : params_(&params), mirostat_(params) {}

  /// Samples from `logits`, [V], which are overwritten. `said` are the tokens that penalties count,
  /// in order: those of this call so far, preceded by the session's if the parameters want that.
  /// `step` is the number of tokens drawn before; `row` is only named in errors; `mask` may be
  /// null. kModel, naming row and token, for a logit that is NaN or +inf, and if all logits are
  /// -inf; kGrammar if a mask, alone or with other stages, left no token.
  Result<Choice> sample(std::span<float> logits, std::span<const int32_t> said, uint64_t step,
                        int64_t row, const TokenMask* mask = nullptr, const Further& further = {});

  /// The candidates from which the last token was drawn, in no particular order.
  [[nodiscard]] std::span<const Candidate> candidates() const noexcept { return candidates_; }

  /// What sample_short() needs; `edited`: some tokens may be aside; `masked`: there is a mask.
  [[nodiscard]] ShortRowNeed short_row(bool edited, bool masked) const noexcept;
  /// The position of a step's draw, as a fraction of the total mass.
  [[nodiscard]] double draw_place(uint64_t step) const noexcept;
  /// Whether bias or penalties may change logits.
  [[nodiscard]] bool edits() const noexcept;
  /// The tokens whose logits sample() may change, apart from the mask, in any order; one may occur
  /// twice.
  void list_edited(std::span<const int32_t> said, size_t vocab, const Further& further,
                   std::vector<int32_t>* tokens);
  /// The result of sample() for the row of `n` logits whose largest ones are `best`, with the parts
  /// that short_row() asks for and all of list_edited() aside; token -1, with nothing changed, if
  /// that needs the whole row. Errors: as sample.
  Result<Choice> sample_short(const ShortRow& best, size_t n, std::span<const int32_t> said,
                              uint64_t step, int64_t row, const TokenMask* mask = nullptr,
                              const Further& further = {});

 private:
  static Result<Choice> greedy(std::span<const float> logits, int64_t row);
  [[nodiscard]] bool only_best() const noexcept;
  void edit_aside(const ShortRow& best, size_t n, std::span<const int32_t> said,
                  const TokenMask* mask, const Further& further);
  Status edit(std::span<float> logits, std::span<const int32_t> said, const Penalties& penalties,
              int64_t row, const TokenMask* mask, const Further& further);
  void cut(std::span<const float> logits, float max, double deviation, uint64_t step);
  void cut_candidates(float max, uint64_t step);
  void cut_weighed(uint64_t step);
  bool cut_short(const ShortRow& best, float max, uint64_t step);
  Choice draw_from_slice(const ShortRow& best, uint64_t step);
  [[nodiscard]] bool draws_from_all() const noexcept;
  void report(const ShortRow& best, Choice* choice);
  int32_t draw_one(uint64_t step, const Further& further);

  const SamplingParams* params_;
  Mirostat mirostat_;
  RowPeaks peaks_;
  TokenCounter counter_;
  std::vector<LogitEdit> edits_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> border_;
  std::vector<float> scratch_;
  std::vector<float> aside_;  // [V], of which only the tokens aside are read
  std::vector<TokenLogprob> top_;
};

}  // namespace gen::sampling
