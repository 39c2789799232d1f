// SPDX-License-Identifier: Apache-2.0
// Look-ups in the tables, see unicode.h.
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
    case CharacterClass::kUnprintable:
      return {kUnprintable, kUnprintableCount};
    case CharacterClass::kUpper:
      return {kIsUpper, kIsUpperCount};
    case CharacterClass::kLower:
      break;
  }
  return {kIsLower, kIsLowerCount};
}

}  // namespace

bool in_class(CharacterClass which, uint32_t c) noexcept {
  const auto ranges = ranges_of(which);
  const auto found =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](uint32_t value, const auto& r) { return value < r.first; });
  return found != ranges.begin() && c <= (found - 1)->last;
}

void append_in_case(Case which, uint32_t c, std::string* out) {
  using namespace unicode;
  if (c < 0x80) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    const uint32_t changed = which == Case::kLower ? c | 0x20 : c & ~0x20U;
    out->push_back(static_cast<char>(letter ? changed : c));
    return;
  }
  const bool up = which == Case::kUpper;
  const bool title = which == Case::kTitle;
  const std::span<const CaseText> texts = up      ? std::span(kUpperTexts, kUpperTextsCount)
                                          : title ? std::span(kTitleTexts, kTitleTextsCount)
                                                  : std::span(kLowerTexts, kLowerTextsCount);
  const auto text =
      std::lower_bound(texts.begin(), texts.end(), c,
                       [](const CaseText& one, uint32_t value) { return one.character < value; });
  if (text != texts.end() && text->character == c) {
    *out += text->text;
    return;
  }
  const std::span<const CaseRun> runs = up      ? std::span(kUpper, kUpperCount)
                                        : title ? std::span(kTitle, kTitleCount)
                                                : std::span(kLower, kLowerCount);
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
