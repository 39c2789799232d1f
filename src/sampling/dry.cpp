// SPDX-License-Identifier: Apache-2.0
// See dry.h. Runs that end at different positions but equal the end of the text are common prefixes
// of the reversed text and its suffixes, which the Z algorithm finds in linear time.
#include "sampling/dry.h"

#include <algorithm>
#include <limits>

namespace gen::sampling {

double dry_penalty(size_t length, size_t allowed, double multiplier, double base) noexcept {
  double penalty = multiplier;
  double factor = base;  // to the power of 1, 2, 4, …; may become infinite, never 0
  for (size_t n = length - allowed; n > 0 && penalty < kMaxDryPenalty; n /= 2) {
    if (n % 2 != 0) penalty *= factor;
    factor *= factor;
  }
  return std::min(penalty, kMaxDryPenalty);
}

bool Dry::is_on(const SamplingParams& params) noexcept {
  return params.dry_multiplier > 0.0 && params.dry_multiplier <= kMaxDryMultiplier &&
         params.dry_base >= 1.0 && params.dry_base <= kMaxDryBase;
}

std::span<TokenPenalty> Dry::find(std::span<const int32_t> text, size_t unbroken,
                                  const SamplingParams& params, size_t vocab) {
  for (const TokenPenalty& entry : found_) marks_[static_cast<size_t>(entry.token)] = 0;
  found_.clear();
  const auto allowed = static_cast<size_t>(std::max(params.dry_allowed_length, 1));
  if (params.dry_window > 0 && static_cast<size_t>(params.dry_window) < text.size()) {
    text = text.last(static_cast<size_t>(params.dry_window));
  }
  // A run and the token after it take one token more than is allowed.
  if (text.size() <= allowed || unbroken < allowed) return {};
  if (marks_.size() < vocab) marks_.resize(vocab, 0);
  measure(text, unbroken);
  for (size_t back = 1; back < text.size(); ++back) {
    const int32_t length = lengths_[back];
    if (static_cast<size_t>(length) < allowed) continue;
    const int32_t next = text[text.size() - back];
    if (next < 0 || static_cast<size_t>(next) >= vocab) continue;
    uint32_t& mark = marks_[static_cast<size_t>(next)];
    if (mark == 0) {
      found_.push_back({next, 0.0});
      mark = static_cast<uint32_t>(found_.size());
    }
    double& longest = found_[mark - 1].amount;
    longest = std::max(longest, static_cast<double>(length));
  }
  for (TokenPenalty& entry : found_) {
    entry.amount = dry_penalty(static_cast<size_t>(entry.amount), allowed, params.dry_multiplier,
                               params.dry_base);
  }
  return found_;
}

// lengths_[back]: number of tokens, at most `most`, before `back` tokens from the end that equal
// those at the end.
void Dry::measure(std::span<const int32_t> text, size_t most) {
  const size_t size = text.size();
  const auto reversed = [&](size_t i) { return text[size - 1 - i]; };
  lengths_.assign(size, 0);
  size_t begin = 0;  // of the match that extends farthest,
  size_t end = 0;    // and its end
  for (size_t i = 1; i < size; ++i) {
    size_t length = 0;
    if (i < end) length = std::min(static_cast<size_t>(lengths_[i - begin]), end - i);
    while (i + length < size && reversed(length) == reversed(i + length)) ++length;
    lengths_[i] = static_cast<int32_t>(length);
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
  }
  const auto cap =
      static_cast<int32_t>(std::min<size_t>(most, std::numeric_limits<int32_t>::max()));
  for (int32_t& length : lengths_) length = std::min(length, cap);
}

}  // namespace gen::sampling
