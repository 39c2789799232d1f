// SPDX-License-Identifier: Apache-2.0
// See reasoning_limit.h.
#include "generate/answer/reasoning_limit.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gen::generate {

Result<std::shared_ptr<ReasoningLimit>> ReasoningLimit::make(
    const AnswerForm& form, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
    std::string_view opening, const WrittenAnswer& said, const AnswerRules& rules,
    std::shared_ptr<const std::atomic<bool>> ask) {
  std::shared_ptr<ReasoningLimit> made(
      new ReasoningLimit(form, std::move(tokenizer), opening, said));
  made->ask_ = std::move(ask);
  made->budget_ = rules.budget;
  // The message is text; the mark may be a control token. White space belongs to the message.
  const std::string end = reasoning_end(*form.format);
  const size_t mark = std::min(end.find_first_not_of(" \n"), end.size());
  const std::string text = rules.budget_text + end.substr(0, mark);
  const tokenizer::TextSegment segments[] = {{text, false},
                                             {std::string_view(end).substr(mark), true}};
  GEN_TRY(made->tokenizer_->encode_segments(segments, 0, tokenizer::kInText, &made->closing_));
  return made;
}

void ReasoningLimit::go_on_from(Progress progress) {
  spent_ = progress.spent;
  if (!progress.ended) return;
  ended_at_ = 0;
  closing_ = std::move(progress.closing);
}

Status ReasoningLimit::check_vocab(int32_t vocab) const noexcept {
  for (const int32_t token : closing_) {
    if (token < vocab) continue;
    return error(Code::kUnsupported,
                 "token %d ends reasoning, and the model's vocabulary has only %d tokens", token,
                 vocab);
  }
  return {};
}

Result<ReasoningLimit::Progress> ReasoningLimit::progress(std::span<const int32_t> held,
                                                          size_t said) {
  GEN_TRY(follow(held, said));
  Progress made;
  made.spent = spent_;
  made.ended = ended_at_.has_value();
  if (made.ended) {
    const size_t next = std::min(said - std::min(*ended_at_, said), closing_.size());
    made.closing.assign(closing_.begin() + static_cast<std::ptrdiff_t>(next), closing_.end());
  }
  return made;
}

// The tokens up to `said`, of which reasoning is counted.
Status ReasoningLimit::follow(std::span<const int32_t> held, size_t said) {
  for (; followed_ < said; ++followed_) {
    const size_t at = held.size() - said + followed_;
    text_.clear();
    const int32_t previous = at > 0 ? held[at - 1] : tokenizer::kTextStart;
    GEN_TRY(tokenizer_->append_piece(held[at], previous, true, &text_));
    if (reader_.in_reasoning()) ++spent_;
    Event event;
    event.text = text_;
    reader_.take(event);
  }
  return {};
}

Status ReasoningLimit::edit(std::span<float> logits, std::span<const int32_t> held, size_t said) {
  GEN_TRY(follow(held, said));
  if (!ended_at_.has_value() && reader_.in_reasoning()) {
    const bool spent = budget_ >= 0 && spent_ >= budget_;
    if (spent || (ask_ != nullptr && ask_->load(std::memory_order_relaxed))) ended_at_ = said;
  }
  if (!ended_at_.has_value() || said < *ended_at_) return {};
  const size_t next = said - *ended_at_;
  if (next >= closing_.size()) return {};
  const auto token = static_cast<size_t>(closing_[next]);
  std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
  logits[token] = 0.0F;
  return {};
}

CallParams with_limit(CallParams params, std::shared_ptr<ReasoningLimit> limit) {
  params.edit_logits = [own = std::move(params.edit_logits), limit = std::move(limit)](
                           std::span<float> logits, std::span<const int32_t> held, size_t said) {
    if (own != nullptr) GEN_TRY(own(logits, held, said));
    return limit->edit(logits, held, said);
  };
  return params;
}

}  // namespace gen::generate
