// SPDX-License-Identifier: Apache-2.0
// See draft_draw.h.
#include "generate/draft/draft_draw.h"

#include <algorithm>
#include <bit>

namespace gen::generate {
namespace {

// Mirostat is left out: its state belongs to the call. That may cost accepted drafts, never a
// correct result.
sampling::SamplingParams for_drafts(sampling::SamplingParams params, bool rejects) {
  params.logprobs = -1;
  params.mirostat_tau = 0.0;
  params.gumbel = params.gumbel && !rejects;
  return params;
}

}  // namespace

DraftDraw::DraftDraw(const sampling::SamplingParams& params, bool rejects, int32_t rows)
    : params_(for_drafts(params, rejects)),
      rejects_(rejects),
      looks_back_(sampling::Penalties::of(params_).any()),
      chain_(params_),
      from_(rejects ? static_cast<size_t>(rows) : 0) {}

void DraftDraw::reserve(size_t tokens) {
  if (looks_back_) counted_.reserve(tokens + kMaxDraftRows);
}

void DraftDraw::begin(std::span<const int32_t> held, size_t said) {
  step_ = said;
  for (auto& row : from_) row.clear();
  if (!looks_back_) return;
  const size_t n = params_.penalize_prompt ? held.size() : std::min(said, held.size());
  const auto tail = held.last(n);
  counted_.assign(tail.begin(), tail.end());
  before_ = n;
}

int32_t DraftDraw::draw(const DraftTree& tree, std::span<float> logits,
                        const sampling::TokenMask* mask) {
  const auto depth = static_cast<size_t>(tree.rows() - 1);
  if (looks_back_) {
    counted_.resize(before_);
    const auto guessed = tree.tokens().subspan(1);
    counted_.insert(counted_.end(), guessed.begin(), guessed.end());
  }
  sampling::Further further;
  if (rejects_) further.draw_stream = sampling::kDraftStream;
  const Result<sampling::Choice> choice =
      chain_.sample(logits, counted_, step_ + depth, 0, mask, further);
  if (!choice.ok()) return -1;
  if (rejects_ && depth + 1 < from_.size()) {
    auto& from = from_[depth + 1];
    const auto candidates = chain_.candidates();
    from.reserve(std::bit_ceil(candidates.size()));
    from.assign(candidates.begin(), candidates.end());
    std::sort(from.begin(), from.end(),
              [](const auto& a, const auto& b) { return a.token < b.token; });
  }
  return choice.value().token;
}

std::optional<sampling::Proposal> DraftDraw::proposal(const DraftTree& tree,
                                                      int32_t row) const noexcept {
  if (!rejects_) return std::nullopt;
  for (int32_t next = row + 1; next < tree.rows(); ++next) {
    const auto at = static_cast<size_t>(next);
    if (tree.parents()[at] != row) continue;
    const bool drawn = tree.is_chain() && at < from_.size();
    return sampling::Proposal{tree.tokens()[at],
                              drawn ? std::span<const sampling::Candidate>(from_[at])
                                    : std::span<const sampling::Candidate>()};
  }
  return std::nullopt;
}

}  // namespace gen::generate
