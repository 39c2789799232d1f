// SPDX-License-Identifier: Apache-2.0
// See text_index.h. A place is the index of the next token, so the tokens before it are its key.
#include "generate/draft/text_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace gen::generate {
namespace {

constexpr size_t kFewest = 256;

}  // namespace

TextIndex::TextIndex(int32_t key, size_t most) noexcept
    : key_(std::clamp(key, 1, 2)), most_(std::bit_floor(std::max(most, kFewest))) {}

void TextIndex::reserve(size_t tokens) {
  if (tokens > tokens_.size() && tokens_.size() < most_) grow(tokens);
}

// Inserts everything again, since hash slots and ring positions change.
void TextIndex::grow(size_t tokens) {
  const size_t size = std::min(std::bit_ceil(std::max(tokens, kFewest)), most_);
  TextIndex larger(key_, most_);
  larger.tokens_.resize(size);
  larger.back_.resize(size);
  larger.heads_.resize(size);
  larger.mask_ = size - 1;
  larger.size_ = std::max<int64_t>(size_ - static_cast<int64_t>(tokens_.size()), 0);
  for (int64_t place = larger.size_; place < size_; ++place) larger.put(at(place));
  tokens_ = std::move(larger.tokens_);
  back_ = std::move(larger.back_);
  heads_ = std::move(larger.heads_);
  mask_ = larger.mask_;
}

void TextIndex::add(std::span<const int32_t> tokens) {
  const size_t wanted = static_cast<size_t>(size_) + tokens.size();
  if (wanted > tokens_.size() && tokens_.size() < most_) grow(wanted);
  for (const int32_t token : tokens) put(token);
}

void TextIndex::clear() noexcept {
  size_ = 0;
  std::fill(heads_.begin(), heads_.end(), 0);
}

size_t TextIndex::memory() const noexcept {
  return tokens_.capacity() * sizeof(int32_t) + back_.capacity() * sizeof(int32_t) +
         heads_.capacity() * sizeof(int64_t);
}

size_t TextIndex::slot(int32_t first, int32_t second) const noexcept {
  uint64_t key = static_cast<uint32_t>(first);
  if (key_ > 1) key |= uint64_t{static_cast<uint32_t>(second)} << 32U;
  key *= 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(key >> 32U) & mask_;
}

// Stores the token, then the place after it.
void TextIndex::put(int32_t token) noexcept {
  tokens_[static_cast<size_t>(size_) & mask_] = token;
  ++size_;
  const auto next = static_cast<size_t>(size_) & mask_;
  back_[next] = 0;
  if (size_ < key_ || !holds(size_ - key_)) return;
  int64_t& head = heads_[slot(token, key_ > 1 ? at(size_ - 2) : 0)];
  const int64_t behind = head > 0 ? size_ - (head - 1) : 0;
  if (behind < std::numeric_limits<int32_t>::max()) back_[next] = static_cast<int32_t>(behind);
  head = size_ + 1;
}

size_t TextIndex::find(std::span<const int32_t> text, int32_t depth,
                       std::span<Match> found) const noexcept {
  const size_t n = text.size();
  if (n < static_cast<size_t>(key_) || size_ == 0) return 0;
  int64_t place = heads_[slot(text[n - 1], key_ > 1 ? text[n - 2] : 0)] - 1;
  size_t count = 0;
  const auto ring = static_cast<int64_t>(tokens_.size());
  // Places of other keys can share the slot, so the search is limited.
  for (size_t looks = 0; looks < 4 * found.size() && count < found.size(); ++looks) {
    if (place <= 0 || size_ - place >= ring) break;
    const auto deepest = std::min<int64_t>({depth, static_cast<int64_t>(n), place,
                                            ring - (size_ - place)});
    int32_t length = 0;
    while (length < deepest && at(place - 1 - length) == text[n - 1 - static_cast<size_t>(length)])
      ++length;
    if (length >= key_ && place < size_) found[count++] = {place, length};
    const int32_t back = back_[static_cast<size_t>(place) & mask_];
    if (back <= 0) break;
    place -= back;
  }
  return count;
}

}  // namespace gen::generate
