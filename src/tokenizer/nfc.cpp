// SPDX-License-Identifier: Apache-2.0
// See nfc.h. The algorithm of the Unicode standard, chapter 3.11: decompose, sort marks, compose.
// Texts without any affected character are returned unchanged.
#include "tokenizer/nfc.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/nfc_data.h"

namespace gen::tokenizer {
namespace {

// Lower characters neither decompose nor are marks, and never compose with what follows.
constexpr uint32_t kFirstTouched = 0x300;

// Long texts are normalised in stretches of about this many characters.
constexpr size_t kStretch = 256;

constexpr uint32_t kSyllables = 0xAC00;
constexpr uint32_t kLeads = 0x1100;
constexpr uint32_t kVowels = 0x1161;
constexpr uint32_t kTails = 0x11A7;  // one before the first
constexpr uint32_t kNLeads = 19;
constexpr uint32_t kNVowels = 21;
constexpr uint32_t kNTails = 28;
constexpr uint32_t kNSyllables = kNLeads * kNVowels * kNTails;

/// A character with its combining class, by which marks are sorted; 0: not a mark.
struct Placed {
  uint32_t character;
  uint8_t order;
};

uint8_t order_of(uint32_t character) noexcept {
  const auto all = combining_ranges();
  const auto after = std::upper_bound(
      all.begin(), all.end(), character,
      [](uint32_t wanted, const CombiningRange& range) { return wanted < range.first; });
  if (after == all.begin()) return 0;
  const CombiningRange& range = *(after - 1);
  return character <= range.last ? range.order : uint8_t{0};
}

void take_apart(uint32_t character, std::vector<Placed>* out) {
  const Decomposed parts = decompose(character);
  for (size_t i = 0; i < parts.count; ++i) {
    out->push_back({parts.characters[i], order_of(parts.characters[i])});
  }
}

// 0 if the two do not compose.
uint32_t together(uint32_t first, uint32_t second) noexcept {
  if (first - kLeads < kNLeads && second - kVowels < kNVowels) {
    return kSyllables + ((first - kLeads) * kNVowels + (second - kVowels)) * kNTails;
  }
  const bool open = first - kSyllables < kNSyllables && (first - kSyllables) % kNTails == 0;
  if (open && second > kTails && second < kTails + kNTails) return first + (second - kTails);
  const auto all = decompositions();
  const auto known = compositions();
  const auto found = std::lower_bound(known.begin(), known.end(), std::pair(first, second),
                                      [&](uint16_t at, const auto& wanted) {
                                        return std::pair(all[at].first, all[at].second) < wanted;
                                      });
  if (found == known.end()) return 0;
  const Decomposition& one = all[*found];
  return one.first == first && one.second == second ? one.character : 0;
}

void put_in_order(std::vector<Placed>* all) {
  for (size_t i = 0; i < all->size();) {
    size_t end = i + 1;
    if ((*all)[i].order != 0) {
      while (end < all->size() && (*all)[end].order != 0) ++end;
      std::stable_sort(all->begin() + static_cast<std::ptrdiff_t>(i),
                       all->begin() + static_cast<std::ptrdiff_t>(end),
                       [](Placed a, Placed b) { return a.order < b.order; });
    }
    i = end;
  }
}

// A mark composes with the last character that is not a mark, unless a mark of its own class or a
// higher one is between them.
void put_together(std::vector<Placed>* all) {
  size_t kept = 0;
  size_t base = SIZE_MAX;
  for (const Placed one : *all) {
    if (base != SIZE_MAX) {
      const bool beside = kept == base + 1;
      const uint8_t between = (*all)[kept - 1].order;
      const bool reaches = beside || (between != 0 && between < one.order);
      const uint32_t made = reaches ? together((*all)[base].character, one.character) : 0;
      if (made != 0) {
        (*all)[base].character = made;
        continue;
      }
    }
    if (one.order == 0) base = kept;
    (*all)[kept++] = one;
  }
  all->resize(kept);
}

// Possible ends of a stretch (not all of them): such a character composes with nothing before it.
bool begins_anew(uint32_t character) noexcept {
  return character < kFirstTouched || (character >= 0x3400 && character < 0xA000) ||
         (character >= 0x3041 && character < 0x3097) || character - kSyllables < kNSyllables;
}

void form(std::vector<Placed>* all, std::string* out) {
  put_in_order(all);
  put_together(all);
  for (const Placed one : *all) utf8_append(one.character, out);
  all->clear();
}

}  // namespace

Decomposed decompose(uint32_t character) noexcept {
  if (character - kSyllables < kNSyllables) {
    const uint32_t at = character - kSyllables;
    const uint32_t tail = at % kNTails;
    return {{kLeads + at / (kNVowels * kNTails), kVowels + at / kNTails % kNVowels, kTails + tail},
            tail != 0 ? size_t{3} : size_t{2}};
  }
  // The second character of a pair never decomposes further, and no decomposition is deeper than
  // three.
  std::array<uint32_t, 4> marks{};
  size_t n_marks = 0;
  const auto all = decompositions();
  for (;;) {
    const auto found = std::lower_bound(
        all.begin(), all.end(), character,
        [](const Decomposition& one, uint32_t wanted) { return one.character < wanted; });
    if (found == all.end() || found->character != character) break;
    character = found->first;
    if (found->second != 0) marks[n_marks++] = found->second;
  }
  Decomposed out{{character}, 1};
  while (n_marks-- > 0) out.characters[out.count++] = marks[n_marks];
  return out;
}

std::string_view to_nfc(std::string_view text, std::string* made) {
  size_t begin = 0;  // of the last character that following ones may affect
  size_t at = 0;
  bool touched = false;
  while (at < text.size() && !touched) {
    size_t next = at;
    touched = utf8_next(text, &next) >= kFirstTouched;
    if (!touched) begin = std::exchange(at, next);
  }
  if (!touched) return text;
  made->assign(text.substr(0, begin));
  std::vector<Placed> all;
  for (at = begin; at < text.size();) {
    const uint32_t character = utf8_next(text, &at);
    if (all.size() >= kStretch && begins_anew(character)) form(&all, made);
    if (character < 0x80) {
      all.push_back({character, 0});
    } else {
      take_apart(character, &all);
    }
  }
  form(&all, made);
  if (*made == text) return text;
  return *made;
}

}  // namespace gen::tokenizer
