// SPDX-License-Identifier: Apache-2.0
// Chain: from a row of logits to a token, in the fixed order bias, mask, penalties (DRY last),
// barred tokens, greedy?, top-n-sigma, temperature, top-k, typical-p, top-p, min-p, XTC, mirostat,
// draw; each stage is a file of this room. The result depends on the logits, the parameters, the
// mask, the tokens said so far, the seed and the step only: not on the machine, the standard
// library, threads or batches. Mirostat alone has a memory, of the draws of this text: it is in the
// chain, so steps come in their order, each once, and a draw that is made is a token that is said.
//
// Users of llama.cpp will find the same stages, with these differences: there the temperature comes
// last by default, so that the cuts see probabilities at temperature 1; the deviation of
// top-n-sigma is that of the edited logits, here of the model's own, as a large penalty on one
// token is no news about the others; a grammar is asked after the draw; and mirostat leaves out
// every cut, while here those that are set act.
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

/// A sampled token. `top` is valid until the next sample(); it and `logprob` are there if the
/// parameters ask for log-probabilities.
struct Choice {
  int32_t token = -1;
  float logprob = 0.0F;  // log-softmax of the raw logits, else 0
  std::span<const TokenLogprob> top;
};

/// What there may be beside logits and parameters at a step.
struct Further {
  std::span<const TokenPenalty> penalties = {};  // subtracted after the other penalties: DRY's
  std::span<const int32_t> barred = {};          // not drawn while anything else is possible
  /// A draw keeps this or replaces it (acceptance.h), in place of drawing; null: there is none.
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
  /// in order: those of this call so far, after the session's if the parameters want that. `step`
  /// is the number of tokens drawn before; `row` is only named in errors; `mask` may be null.
  /// kModel, naming row and token, for a logit that is NaN or +inf, and when no token is possible
  /// because all are -inf; kGrammar if there was a mask and it or what came with it left none.
  Result<Choice> sample(std::span<float> logits, std::span<const int32_t> said, uint64_t step,
                        int64_t row, const TokenMask* mask = nullptr, const Further& further = {});

  /// What the last token that was drawn was drawn from, in no certain order.
  [[nodiscard]] std::span<const Candidate> candidates() const noexcept { return candidates_; }

  /// What sample_short() needs; `edited`: some tokens may be aside, `masked`: there is a mask.
  [[nodiscard]] ShortRowNeed short_row(bool edited, bool masked) const noexcept;
  /// Where the draw of a step lies, as a share of all mass.
  [[nodiscard]] double draw_place(uint64_t step) const noexcept;
  /// Whether bias or penalties may change logits.
  [[nodiscard]] bool edits() const noexcept;
  /// The tokens whose logits sample() may change, other than by the mask, in any order; one may be
  /// there twice.
  void list_edited(std::span<const int32_t> said, size_t vocab, const Further& further,
                   std::vector<int32_t>* tokens);
  /// What sample() gives for the row of `n` logits that `best` is of, with what short_row() says
  /// and all of list_edited() aside; token -1, and nothing has changed, where that takes the whole
  /// row.
  /// Errors: as sample.
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
  Choice draw_from_part(const ShortRow& best, uint64_t step);
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
  std::vector<float> aside_;  // [V], of which only the tokens aside are looked at
  std::vector<TokenLogprob> top_;
};

}  // namespace gen::sampling
