// SPDX-License-Identifier: Apache-2.0
// Characters as Python's str methods see them.
#pragma once

#include <cstdint>
#include <string>

namespace gen::templates {

enum class CharacterClass : uint8_t {
  kAlphabetic,
  kNumeric,
  kDigit,
  kDecimal,
  kUnprintable,
  kUpper,
  kLower,
  kTitle,
  kIdentifierStart,
  kIdentifierPart,
};
enum class Case : uint8_t { kUpper, kLower, kTitle, kFold };

bool in_class(CharacterClass which, uint32_t character) noexcept;
/// What the regular expression \w finds.
bool is_word(uint32_t character) noexcept;
/// Appends the character in a case; one may become several.
void append_in_case(Case which, uint32_t character, std::string* out);

}  // namespace gen::templates
