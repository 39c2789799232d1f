// SPDX-License-Identifier: Apache-2.0
// Proves the decoder against the ranges of the Unicode standard, walking all scalar values and all
// short byte strings; the oracle below states well-formedness by decoding and range, not by table.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace gen {
namespace {

// Length of the well-formed character at the start of `text`, or 0. Decodes blindly by the lead
// byte's shape, then rejects overlong forms, surrogates and values above U+10FFFF.
size_t oracle_length(std::string_view text, uint32_t* code_point) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  size_t length = 0;
  uint32_t value = 0;
  if (lead >> 7 == 0) {
    length = 1, value = lead;
  } else if (lead >> 5 == 6) {
    length = 2, value = lead & 31;
  } else if (lead >> 4 == 14) {
    length = 3, value = lead & 15;
  } else if (lead >> 3 == 30) {
    length = 4, value = lead & 7;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >> 6 != 2) return 0;
    value = value * 64 + (byte & 63);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
  *code_point = value;
  return length;
}

bool oracle_valid(std::string_view text) {
  uint32_t ignored = 0;
  while (!text.empty()) {
    const size_t length = oracle_length(text, &ignored);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

TEST(Utf8, RoundTripsEveryScalarValue) {
  for (uint32_t value = 0; value <= 0x10FFFF; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string text;
    utf8_append(value, &text);
    uint32_t expected = 0;
    ASSERT_EQ(oracle_length(text, &expected), text.size());
    ASSERT_EQ(expected, value);
    size_t offset = 0;
    ASSERT_EQ(utf8_next(text, &offset), value);
    ASSERT_EQ(offset, text.size());
    ASSERT_TRUE(utf8_valid(text));
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(utf8_complete_prefix(text.substr(0, cut)), 0U) << std::hex << value;
      ASSERT_EQ(utf8_valid_prefix(text.substr(0, cut)), 0U);
    }
  }
}

TEST(Utf8, AppendsReplacementForNonScalars) {
  for (uint32_t value : {0xD800U, 0xDFFFU, 0x110000U, 0xFFFFFFFFU}) {
    std::string text;
    utf8_append(value, &text);
    EXPECT_EQ(text, "\xEF\xBF\xBD");
  }
}

TEST(Utf8, AgreesWithTheOracleOnShortStrings) {
  // All strings up to four bytes over the bytes where the rules change.
  const std::vector<int> bytes = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                  0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                  0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
  std::vector<std::string> level = {""};
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> next;
    for (const std::string& head : level) {
      for (int byte : bytes) next.push_back(head + static_cast<char>(byte));
    }
    level = std::move(next);
    for (const std::string& text : level) {
      ASSERT_EQ(utf8_valid(text), oracle_valid(text)) << ::testing::PrintToString(text);
      const size_t valid = utf8_valid_prefix(text);
      ASSERT_TRUE(oracle_valid(std::string_view(text).substr(0, valid)));
      uint32_t expected = 0;
      const size_t first = oracle_length(text, &expected);
      size_t offset = 0;
      const uint32_t got = utf8_next(text, &offset);
      ASSERT_EQ(offset, first == 0 ? 1 : first) << ::testing::PrintToString(text);
      ASSERT_EQ(got, first == 0 ? 0xFFFDU : expected);
    }
  }
}

TEST(Utf8, ValidPrefixStopsAtTheCharacter) {
  EXPECT_EQ(utf8_valid_prefix("ab\xC3\xA9\xFFz"), 4U);
  EXPECT_EQ(utf8_valid_prefix("ab\xE2\x82"), 2U);
  EXPECT_EQ(utf8_valid_prefix(""), 0U);
  EXPECT_EQ(utf8_valid_prefix(std::string_view("\0a", 2)), 2U);
}

TEST(Utf8, CompletePrefixLeavesOutOnlyAnUnfinishedEnd) {
  EXPECT_EQ(utf8_complete_prefix(""), 0U);
  EXPECT_EQ(utf8_complete_prefix("abc"), 3U);
  EXPECT_EQ(utf8_complete_prefix("ab\xC3\xA9"), 4U);
  EXPECT_EQ(utf8_complete_prefix("ab\xC3"), 2U);
  EXPECT_EQ(utf8_complete_prefix("ab\xE2\x82"), 2U);
  EXPECT_EQ(utf8_complete_prefix("ab\xF0\x9F\x98"), 2U);
  EXPECT_EQ(utf8_complete_prefix("\xC3\xA9\xF0\x9F"), 2U);
  // Malformed bytes count as finished.
  EXPECT_EQ(utf8_complete_prefix("ab\xFF"), 3U);
  EXPECT_EQ(utf8_complete_prefix("ab\x80"), 3U);
  EXPECT_EQ(utf8_complete_prefix("\x80\x80\x80\x80"), 4U);
  EXPECT_EQ(utf8_complete_prefix("ab\xE0\x80"), 4U);  // overlong: can never become well-formed
  EXPECT_EQ(utf8_complete_prefix("ab\xED\xA0"), 4U);  // a surrogate
  EXPECT_EQ(utf8_complete_prefix("ab\xF4\x90"), 4U);  // above U+10FFFF
  EXPECT_EQ(utf8_complete_prefix("\xC3\xA9\xA9"), 3U);
}

}  // namespace
}  // namespace gen
