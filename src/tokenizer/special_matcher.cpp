// SPDX-License-Identifier: Apache-2.0
// SpecialMatcher, see special_matcher.h.
#include "tokenizer/special_matcher.h"

#include <algorithm>

namespace gen::tokenizer {
namespace {

unsigned byte_at(std::string_view text, size_t index) noexcept {
  return static_cast<unsigned char>(text[index]);
}

}  // namespace

void SpecialMatcher::finish() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  for (const Entry& entry : entries_) starts_[byte_at(entry.text, 0)] = true;
}

std::optional<SpecialMatch> SpecialMatcher::find(std::string_view text,
                                                 size_t offset) const noexcept {
  if (entries_.empty()) return std::nullopt;
  for (; offset < text.size(); ++offset) {
    if (const auto match = match_at(text, offset)) return match;
  }
  return std::nullopt;
}

std::optional<SpecialMatch> SpecialMatcher::match_at(std::string_view text,
                                                     size_t offset) const noexcept {
  if (!starts_[byte_at(text, offset)]) return std::nullopt;
  const Entry* entry = longest_at(text, offset);
  if (entry == nullptr) return std::nullopt;
  return SpecialMatch{offset, offset + entry->text.size(), entry->id};
}

const SpecialMatcher::Entry* SpecialMatcher::longest_at(std::string_view text,
                                                        size_t offset) const noexcept {
  // All entries in [first, last) agree with the text on `depth` bytes; the one that ends there, if
  // any, sorts first and was taken on the way in.
  const Entry* first = entries_.data();
  const Entry* last = first + entries_.size();
  const Entry* best = nullptr;
  for (size_t depth = 0; offset + depth < text.size(); ++depth) {
    const unsigned wanted = byte_at(text, offset + depth);
    first = std::partition_point(first, last, [&](const Entry& entry) {
      return entry.text.size() <= depth || byte_at(entry.text, depth) < wanted;
    });
    last = std::partition_point(
        first, last, [&](const Entry& entry) { return byte_at(entry.text, depth) == wanted; });
    if (first == last) break;
    if (first->text.size() == depth + 1) best = first;
  }
  return best;
}

}  // namespace gen::tokenizer
