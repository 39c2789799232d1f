// SPDX-License-Identifier: Apache-2.0
// Sets of characters, see characters.h.
#include "grammar/expression/characters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;
constexpr size_t kFew = 8;  // ranges that are added individually

// A run of characters whose encodings are all combinations of one byte set per position: they have
// the same length, and after the first position where low and high differ every byte is possible.
ExprId stretch(Expressions& to, uint32_t low, uint32_t high) {
  std::string from;
  std::string until;
  utf8_append(low, &from);
  utf8_append(high, &until);
  std::vector<ExprId> parts;
  for (size_t i = 0; i < from.size(); ++i) {
    parts.push_back(
        to.bytes(ByteSet::range(static_cast<uint8_t>(from[i]), static_cast<uint8_t>(until[i]))));
  }
  return to.sequence(parts);
}

// Splits a range until stretch() can express each piece.
void cut(Expressions& to, CharRange range, std::vector<ExprId>* out) {
  static constexpr std::array<uint32_t, 3> kLengthEnds = {0x7F, 0x7FF, 0xFFFF};
  std::vector<CharRange> open = {range};
  while (!open.empty()) {
    const auto [low, high] = open.back();
    open.pop_back();
    uint32_t border = 0;  // the last character of the first half
    for (const uint32_t end : kLengthEnds) {
      if (low <= end && high > end && border == 0) border = end;
    }
    for (uint32_t bits = 6; bits <= 18 && border == 0 && high > 0x7F; bits += 6) {
      const uint32_t below = (uint32_t{1} << bits) - 1;
      if ((low & ~below) == (high & ~below)) break;  // they differ only in later positions
      if ((low & below) != 0) {
        border = low | below;
      } else if ((high & below) != below) {
        border = (high & ~below) - 1;
      }
    }
    if (border == 0 || border >= high) {
      out->push_back(stretch(to, low, high));
    } else {
      open.push_back({border + 1, high});
      open.push_back({low, border});
    }
  }
}

}  // namespace

void CharSet::add(uint32_t low, uint32_t high) {
  if (low > high) return;
  if (low < kFirstSurrogate && high > kLastSurrogate) {
    add(low, kFirstSurrogate - 1);
    low = kLastSurrogate + 1;
  }
  if (low >= kFirstSurrogate && low <= kLastSurrogate) low = kLastSurrogate + 1;
  if (high >= kFirstSurrogate && high <= kLastSurrogate) high = kFirstSurrogate - 1;
  if (low > high) return;
  const auto begin = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const CharRange& r) { return r.high + 1 < low; });
  auto end = begin;
  for (; end != ranges_.end() && end->low <= high + 1; ++end) {
    low = std::min(low, end->low);
    high = std::max(high, end->high);
  }
  const auto place = ranges_.erase(begin, end);
  ranges_.insert(place, {low, high});
}

void CharSet::add(const CharSet& other) {
  if (other.ranges_.size() < kFew) {
    for (const CharRange& range : other.ranges_) add(range.low, range.high);
    return;
  }
  std::vector<CharRange> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             std::back_inserter(all),
             [](const CharRange& a, const CharRange& b) { return a.low < b.low; });
  size_t n = 0;
  for (const CharRange& range : all) {
    if (n > 0 && range.low <= all[n - 1].high + 1) {
      all[n - 1].high = std::max(all[n - 1].high, range.high);
    } else {
      all[n++] = range;
    }
  }
  all.resize(n);
  ranges_ = std::move(all);
}

void CharSet::add(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharRange& a, const CharRange& b) { return a.low < b.low; });
  CharSet sorted;
  for (const CharRange& range : ranges) sorted.add(range.low, range.high);  // at the end
  add(sorted);
}

CharSet CharSet::inverted() const {
  CharSet result;
  uint32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.low > next) result.add(next, range.low - 1);
    next = range.high + 1;
  }
  if (next <= kLastCharacter) result.add(next, kLastCharacter);
  return result;
}

ExprId characters(Expressions& to, const CharSet& set) {
  std::vector<ExprId> parts;
  for (const CharRange& range : set.ranges()) cut(to, range, &parts);
  return to.choice(parts);
}

}  // namespace gen::grammar
