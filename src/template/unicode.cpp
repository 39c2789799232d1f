// SPDX-License-Identifier: Apache-2.0
// Look-up in the tables, see unicode.h.
#include "template/unicode.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "template/unicode_data.h"

namespace gen::templates {
namespace {

std::span<const unicode::Range> ranges_of(CharacterClass which) noexcept {
  using namespace unicode;
  switch (which) {
    case CharacterClass::kAlphabetic:
      return {kAlphabetic, kAlphabeticCount};
    case CharacterClass::kNumeric:
      return {kNumeric, kNumericCount};
    case CharacterClass::kDigit:
      return {kDigit, kDigitCount};
    case CharacterClass::kDecimal:
      return {kDecimal, kDecimalCount};
    case CharacterClass::kUnprintable:
      return {kUnprintable, kUnprintableCount};
    case CharacterClass::kUpper:
      return {kIsUpper, kIsUpperCount};
    case CharacterClass::kLower:
      return {kIsLower, kIsLowerCount};
    case CharacterClass::kTitle:
      return {kIsTitle, kIsTitleCount};
    case CharacterClass::kIdentifierStart:
      return {kIdentifierStart, kIdentifierStartCount};
    case CharacterClass::kIdentifierPart:
      break;
  }
  return {kIdentifierPart, kIdentifierPartCount};
}

struct CaseTable {
  std::span<const unicode::CaseText> texts;
  std::span<const unicode::CaseRun> runs;
};

CaseTable table_of(Case which) noexcept {
  using namespace unicode;
  switch (which) {
    case Case::kUpper:
      return {{kUpperTexts, kUpperTextsCount}, {kUpper, kUpperCount}};
    case Case::kLower:
      return {{kLowerTexts, kLowerTextsCount}, {kLower, kLowerCount}};
    case Case::kTitle:
      return {{kTitleTexts, kTitleTextsCount}, {kTitle, kTitleCount}};
    case Case::kFold:
      break;
  }
  return {{kFoldTexts, kFoldTextsCount}, {kFold, kFoldCount}};
}

}  // namespace

bool in_class(CharacterClass which, uint32_t c) noexcept {
  const auto ranges = ranges_of(which);
  const auto found =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](uint32_t value, const auto& r) { return value < r.first; });
  return found != ranges.begin() && c <= (found - 1)->last;
}

bool is_word(uint32_t c) noexcept {
  if (c < 0x80) {
    return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  }
  return in_class(CharacterClass::kAlphabetic, c) || in_class(CharacterClass::kNumeric, c) ||
         in_class(CharacterClass::kDigit, c);
}

void append_in_case(Case which, uint32_t c, std::string* out) {
  using namespace unicode;
  if (c < 0x80) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    const bool low = which == Case::kLower || which == Case::kFold;
    const uint32_t changed = low ? c | 0x20 : c & ~0x20U;
    out->push_back(static_cast<char>(letter ? changed : c));
    return;
  }
  const auto [texts, runs] = table_of(which);
  const auto text =
      std::lower_bound(texts.begin(), texts.end(), c,
                       [](const CaseText& one, uint32_t value) { return one.character < value; });
  if (text != texts.end() && text->character == c) {
    *out += text->text;
    return;
  }
  const auto run = std::upper_bound(runs.begin(), runs.end(), c,
                                    [](uint32_t value, const auto& r) { return value < r.first; });
  if (run != runs.begin()) {
    const CaseRun& at = *(run - 1);
    if (c <= at.last && (c - at.first) % static_cast<uint32_t>(at.stride) == 0) {
      c = static_cast<uint32_t>(static_cast<int32_t>(c) + at.difference);
    }
  }
  utf8_append(c, out);
}

}  // namespace gen::templates
