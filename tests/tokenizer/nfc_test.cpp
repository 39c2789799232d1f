// SPDX-License-Identifier: Apache-2.0
// Proves form C against Python's unicodedata (data/nfc.txt, made by make_nfc_cases.py): every
// character with marks behind it, and texts of characters that come apart, join and change places.
#include "tokenizer/nfc.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

std::string nfc(std::string_view text) {
  std::string made;
  return std::string(to_nfc(text, &made));
}

std::string text_of(const std::string& codes) {
  std::string text;
  std::istringstream in(codes);
  for (std::string code; std::getline(in, code, '.');) {
    utf8_append(static_cast<uint32_t>(std::stoul(code, nullptr, 16)), &text);
  }
  return text;
}

TEST(Nfc, IsThatOfUnicodedata) {
  std::ifstream file(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/nfc.txt");
  size_t blocks = 0;
  size_t texts = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind;
    std::string first;
    std::string second;
    in >> kind >> first >> second;
    if (kind == "t") {
      const std::string text = text_of(first);
      EXPECT_EQ(nfc(text), text_of(second)) << line;
      EXPECT_EQ(nfc(text_of(second)), text_of(second)) << line;
      ++texts;
    } else if (kind == "b") {
      const auto from = static_cast<uint32_t>(std::stoul(first, nullptr, 16));
      uint64_t hash = 14695981039346656037U;
      for (uint32_t i = from; i < from + 0x1000; ++i) {
        if (i >= 0xD800 && i <= 0xDFFF) continue;
        std::string one;
        utf8_append(i, &one);
        for (const char c : nfc("a" + one + "\u0323\u0301" + one + "\u0300|")) {
          hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211U;
        }
      }
      EXPECT_EQ(hash, std::stoull(second, nullptr, 16)) << line;
      ++blocks;
    }
  }
  EXPECT_EQ(blocks, 272U);
  EXPECT_EQ(texts, 300U);
}

// However long the text, each part of it is what it is alone.
TEST(Nfc, LongTextsAreThatOfTheirParts) {
  for (const std::string border : {"|", "\u4e00", "\u3042", "\uac01|"}) {
    std::ifstream file(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/nfc.txt");
    std::string text;
    std::string want;
    for (std::string line; std::getline(file, line);) {
      if (line[0] != 't') continue;
      const size_t between = line.find(' ', 2);
      text += text_of(line.substr(2, between - 2)) + border;
      want += text_of(line.substr(between + 1)) + border;
    }
    EXPECT_EQ(nfc(text), want);
  }
}

TEST(Nfc, LeavesWhatIsInFormCWhereItIs) {
  std::string made;
  for (const std::string_view text :
       {std::string_view(""), std::string_view("plain"), std::string_view("\u00e9t\u00e9"),
        std::string_view("\uac01\ud55c"), std::string_view("\U0001F600"),
        std::string_view("a\0b", 3)}) {
    EXPECT_EQ(to_nfc(text, &made).data(), text.data()) << text;
  }
  EXPECT_EQ(nfc("caf"
                "e\u0301"
                "s"),
            "caf\u00e9s");
  EXPECT_EQ(nfc("Vi\u00ea\u0323t"), "Vi\u1ec7t");
}

TEST(Nfc, LongRunsOfMarksTakeNoLongTime) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string formed = nfc(text);
  EXPECT_EQ(formed.substr(0, 3), "\u1ea1");  // the dot below first
  EXPECT_EQ(formed.size(), text.size());     // a and a mark, 3 bytes, are one character of 3
}

}  // namespace
}  // namespace gen::tokenizer
