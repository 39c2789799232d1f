// SPDX-License-Identifier: Apache-2.0
// See transcript.h.
#include "generate/text/transcript.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gen::generate {
namespace {

// Most bytes that a decoder holds back at the end: three, each of which becomes U+FFFD.
constexpr size_t kMaxFlushed = 9;
static_assert(kMaxFlushed <= StopMatcher::kShortPiece);

// As reserve(), with geometric growth for containers that grow in small steps.
template <typename T>
void make_room_for(size_t more, T* container) {
  const size_t wanted = container->size() + more;
  if (wanted > container->capacity()) {
    container->reserve(std::max(wanted, 2 * container->capacity()));
  }
}

}  // namespace

Status Transcript::begin(const TextSpec& spec, std::span<const int32_t> held, std::string unsaid) {
  unsaid_ = std::move(unsaid);
  // For a close() before the first token.
  make_room_for(unsaid_.size() + kMaxFlushed, &piece_);
  make_room_for(unsaid_.size() + kMaxFlushed, &decoded_);
  make_room_for(unsaid_.size() + kMaxFlushed, &result_.text);
  if (!unsaid_.empty()) stops_.make_room(unsaid_.size() + kMaxFlushed);
  stop_tokens_ = params_.stops.tokens;
  if (!params_.stops.ignore_eos) {
    stop_tokens_.insert(stop_tokens_.end(), spec.end_tokens.begin(), spec.end_tokens.end());
  }
  if (spec.tokenizer != nullptr) {
    decoder_.emplace(*spec.tokenizer);
    GEN_TRY(decoder_->resume(held));
  }
  const int32_t context = spec.max_seq_len;
  const int32_t room = context - static_cast<int32_t>(held.size());
  context_ = spec.shifts ? std::numeric_limits<int32_t>::max() : context;
  most_ = std::min(params_.stops.effective_max_new_tokens(), spec.shifts ? context : room);
  result_.tokens.reserve(static_cast<size_t>(most_));
  if (params_.sampling.logprobs >= 0) result_.logprobs.reserve(static_cast<size_t>(most_));
  result_.top_count = std::clamp(params_.sampling.logprobs, 0, spec.vocab_size);
  if (room == 0 && !spec.shifts) end_ = FinishReason::kContextFull;
  return {};
}

Result<bool> Transcript::take(const sampling::Choice& choice, int32_t length, Role role) {
  const bool stops =
      std::find(stop_tokens_.begin(), stop_tokens_.end(), choice.token) != stop_tokens_.end();
  if (role == Role::kEnd || (role == Role::kAny && stops)) {
    end_ = FinishReason::kStopToken;
    return false;
  }
  const auto index = static_cast<int32_t>(result_.tokens.size());
  decoded_ = unsaid_;
  piece_.clear();
  if (decoder_.has_value()) GEN_TRY(decoder_->feed(choice.token, &decoded_));
  // Allocates first, including what close() may add: a failure then changes nothing, and the end of
  // a text does not allocate.
  const size_t most = stops_.held() + decoded_.size() + kMaxFlushed;
  make_room_for(most, &piece_);
  make_room_for(most, &result_.text);
  make_room_for(choice.top.size(), &result_.top_ids);
  make_room_for(choice.top.size(), &result_.top_logprobs);
  const bool stopped = stops_.feed(decoded_, &piece_);
  unsaid_.clear();
  result_.text += piece_;
  result_.tokens.push_back(choice.token);  // begin() has reserved these
  if (params_.sampling.logprobs >= 0) result_.logprobs.push_back(choice.logprob);
  for (const sampling::TokenLogprob& other : choice.top) {
    result_.top_ids.push_back(other.token);
    result_.top_logprobs.push_back(other.logprob);
  }

  if (stopped) {
    end_ = FinishReason::kStopString;
  } else if (role == Role::kLast) {
    end_ = FinishReason::kGrammarComplete;
  } else if (index + 1 == params_.stops.effective_max_new_tokens()) {
    end_ = FinishReason::kLength;
  } else if (length == context_) {
    end_ = FinishReason::kContextFull;
  }

  event_ = Event();
  event_.token = choice.token;
  event_.text = piece_;
  event_.logprob = choice.logprob;
  event_.top = choice.top;
  event_.index = index;
  return true;
}

void Transcript::close(FinishReason reason, bool told) noexcept {
  piece_.clear();
  const bool said = !result_.tokens.empty() || reason == FinishReason::kStopToken;
  if (told && said && reason != FinishReason::kStopString) {  // memory is reserved
    decoded_ = unsaid_;
    unsaid_.clear();
    if (decoder_.has_value() && reason == FinishReason::kStopToken) decoder_->flush(&decoded_);
    if (!stops_.feed(decoded_, &piece_)) stops_.flush(&piece_);
    result_.text += piece_;
  }
  result_.finish_reason = reason;
  result_.usage.completion = static_cast<int32_t>(result_.tokens.size());
  event_ = Event();
  event_.text = piece_;
  event_.index = result_.usage.completion;
  event_.done = true;
  event_.finish_reason = reason;
}

std::string Transcript::take_unsaid() noexcept {
  return unsaid_.empty() ? stops_.take_held() : std::exchange(unsaid_, {});
}

}  // namespace gen::generate
