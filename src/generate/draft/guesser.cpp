// SPDX-License-Identifier: Apache-2.0
// See guesser.h.
#include "generate/draft/guesser.h"

#include "generate/draft/draft_draw.h"
#include "generate/text/grammar_rule.h"
#include "grammar/matcher/matcher.h"
#include "sampling/token_mask.h"

namespace gen::generate {

void Guesser::add_best(Guessing* of, int32_t best) { add_token(of, best < vocab_ ? best : -1); }

void Guesser::add(Guessing* of, std::span<float> logits) { add_token(of, pick(*of->job, logits)); }

// The best allowed token, or a sampled one; -1 if there is none.
int32_t Guesser::pick(const DraftJob& job, std::span<float> logits) {
  grammar::Matcher* const matcher = job.matcher;
  if (matcher != nullptr) {
    mask_.resize(matcher->grammar().vocabulary().words());
    if (!matcher->mask(mask_).ok()) return -1;
    allow_stops(*matcher, job.stops, mask_);
  }
  if (job.draw != nullptr) {
    const std::span<float> known = logits.first(static_cast<size_t>(vocab_));
    sampling::TokenMask mask;
    if (matcher == nullptr) return job.draw->draw(job.tree, known, nullptr);
    bits_.resize(2 * mask_.size());
    for (size_t i = 0; i < mask_.size(); ++i) {
      bits_[2 * i] = static_cast<uint32_t>(mask_[i]);
      bits_[2 * i + 1] = static_cast<uint32_t>(mask_[i] >> 32U);
    }
    mask.bits = bits_;
    return job.draw->draw(job.tree, known, &mask);
  }
  int32_t best = -1;
  for (int32_t token = 0; token < vocab_; ++token) {
    const auto at = static_cast<size_t>(token);
    if (matcher != nullptr &&
        (at / 64 >= mask_.size() || ((mask_[at / 64] >> (at % 64)) & 1U) == 0)) {
      continue;
    }
    if (best < 0 || logits[at] > logits[static_cast<size_t>(best)]) best = token;
  }
  return best;
}

void Guesser::add_token(Guessing* of, int32_t token) {
  DraftJob& job = *of->job;
  of->ends = true;
  if (token < 0) return;
  const bool ends = ends_here(job, token);
  if (job.matcher != nullptr && !ends) {
    const Result<bool> accepted = job.matcher->accept_token(token);
    if (!accepted.ok() || !accepted.value()) return;
    ++of->accepted;
  }
  job.tree.add(token, job.tree.rows() - 1);
  of->ends = ends;
}

void give_back(const Guessing& of) noexcept {
  if (of.accepted > 0) static_cast<void>(of.job->matcher->rollback(of.accepted));
}

}  // namespace gen::generate
