// SPDX-License-Identifier: Apache-2.0
// See dry_breaks.h.
#include "generate/text/dry_breaks.h"

#include <algorithm>
#include <utility>

namespace gen::generate {

DryBreaks::DryBreaks(const tokenizer::Tokenizer* tokenizer, std::vector<std::string> texts)
    : tokenizer_(tokenizer), texts_(std::move(texts)) {
  for (const std::string& text : texts_) longest_ = std::max(longest_, text.size());
}

Status DryBreaks::follow(std::span<const int32_t> held) {
  if (held.empty()) return {};
  size_t i = follows_ ? held.size() - 1 : 0;
  follows_ = true;
  for (; i < held.size(); ++i) {
    GEN_TRY(feed(held[i], i > 0 ? held[i - 1] : tokenizer::kTextStart));
  }
  return {};
}

Status DryBreaks::feed(int32_t token, int32_t previous) {
  ++unbroken_;
  if (tokenizer_ == nullptr) return {};
  if (tokenizer_->is_control(token)) {
    unbroken_ = 0;
    tail_.clear();
    return {};
  }
  const size_t before = tail_.size();
  GEN_TRY(tokenizer_->append_piece(token, previous, false, &tail_));
  for (const std::string& text : texts_) {
    // The match must end in this token, which limits where it can begin.
    const size_t begin = before + 1 > text.size() ? before + 1 - text.size() : 0;
    if (tail_.find(text, begin) != std::string::npos) unbroken_ = 0;
  }
  const size_t most = longest_ > 0 ? longest_ - 1 : 0;
  if (tail_.size() > most) tail_.erase(0, tail_.size() - most);
  return {};
}

Result<bool> DryBreaks::breaks(int32_t token) {
  if (tokenizer_ == nullptr) return false;
  if (tokenizer_->is_control(token)) return true;
  piece_.clear();
  GEN_TRY(tokenizer_->append_piece(token, tokenizer::kInText, false, &piece_));
  return std::any_of(texts_.begin(), texts_.end(), [this](const std::string& text) {
    return piece_.find(text) != std::string::npos;
  });
}

}  // namespace gen::generate
