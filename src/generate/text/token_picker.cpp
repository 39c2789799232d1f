// SPDX-License-Identifier: Apache-2.0
// See token_picker.h.
#include "generate/text/token_picker.h"

namespace gen::generate {

TokenPicker::TokenPicker(const CallParams& params, const tokenizer::Tokenizer* tokenizer)
    : params_(params), chain_(params.sampling) {
  if (sampling::Dry::is_on(params.sampling)) breaks_.emplace(tokenizer, params.dry_breakers());
}

Result<sampling::Choice> TokenPicker::pick(std::span<float> logits, const At& at) {
  if (params_.edit_logits != nullptr) {
    GEN_TRY(params_.edit_logits(logits, at.held, at.said.size()));
  }
  GEN_ASSIGN(const sampling::Further more, further(at, logits.size()));
  return chain_.sample(logits, counted(at), at.said.size(),
                       static_cast<int64_t>(at.held.size()) - 1, at.mask, more);
}

Status TokenPicker::list_edited(const At& at, size_t vocab, std::vector<int32_t>* tokens) {
  GEN_ASSIGN(const sampling::Further more, further(at, vocab));
  chain_.list_edited(counted(at), vocab, more, tokens);
  return {};
}

Result<sampling::Choice> TokenPicker::pick_short(const sampling::ShortRow& row, size_t n,
                                                 const At& at) {
  GEN_ASSIGN(const sampling::Further more, further(at, n));
  return chain_.sample_short(row, n, counted(at), at.said.size(),
                             static_cast<int64_t>(at.held.size()) - 1, at.mask, more);
}

Result<sampling::Further> TokenPicker::further(const At& at, size_t vocab) {
  sampling::Further further;
  further.proposal = at.proposal;
  const int32_t least = params_.stops.min_new_tokens;
  if (least > 0 && at.said.size() < static_cast<size_t>(least)) further.barred = at.stops;
  if (breaks_.has_value()) {
    GEN_ASSIGN(further.penalties, repetitions(at.held, vocab));
  }
  return further;
}

// The penalties of DRY, except for tokens that are breaks by themselves.
Result<std::span<const sampling::TokenPenalty>> TokenPicker::repetitions(
    std::span<const int32_t> held, size_t vocab) {
  GEN_TRY(breaks_->follow(held));
  const auto found = dry_.find(held, breaks_->unbroken(), params_.sampling, vocab);
  for (sampling::TokenPenalty& entry : found) {
    GEN_ASSIGN(const bool spared, breaks_->breaks(entry.token));
    if (spared) entry.amount = 0.0;
  }
  return std::span<const sampling::TokenPenalty>(found);
}

}  // namespace gen::generate
