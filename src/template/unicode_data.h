// SPDX-License-Identifier: Apache-2.0
// Tables of unicode_data.cpp, ascending.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::templates::unicode {

struct Range {
  uint32_t first, last;
};
/// Every `stride`-th character from first to last maps to itself plus `difference`.
struct CaseRun {
  uint32_t first, last;
  int32_t stride, difference;
};
struct CaseText {
  uint32_t character;
  const char* text;  // UTF-8
};

#define GEN_RANGES(name)     \
  extern const Range name[]; \
  extern const size_t name##Count;
#define GEN_CASES(name)                \
  extern const CaseRun name[];         \
  extern const size_t name##Count;     \
  extern const CaseText name##Texts[]; \
  extern const size_t name##TextsCount;
GEN_CASES(kUpper)
GEN_CASES(kLower)
GEN_CASES(kTitle)
GEN_CASES(kFold)
GEN_RANGES(kAlphabetic)
GEN_RANGES(kNumeric)
GEN_RANGES(kDigit)
GEN_RANGES(kDecimal)
GEN_RANGES(kUnprintable)
GEN_RANGES(kIsUpper)
GEN_RANGES(kIsLower)
GEN_RANGES(kIsTitle)
GEN_RANGES(kIdentifierStart)
GEN_RANGES(kIdentifierPart)
#undef GEN_RANGES
#undef GEN_CASES

}  // namespace gen::templates::unicode
