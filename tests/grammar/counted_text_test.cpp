// SPDX-License-Identifier: Apache-2.0
// Masks of texts that are counted by characters are exact, for characters of one byte to four,
// whole or not, at both ends of the count: against counting the characters of every token.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

// What bytes are: `characters` of UTF-8 and `missing` bytes of one more. False if they cannot begin
// any such text.
struct Counted {
  int characters = 0;
  int missing = 0;
  bool operator()(std::string_view bytes) {
    unsigned low = 0x80;
    unsigned high = 0xBF;
    for (const char c : bytes) {
      const unsigned byte = static_cast<unsigned char>(c);
      if (missing > 0) {
        if (byte < low || byte > high) return false;
        low = 0x80;
        high = 0xBF;
        if (--missing == 0) ++characters;
        continue;
      }
      if (byte < 0x80) {
        ++characters;
        continue;
      }
      if (byte < 0xC2 || byte > 0xF4) return false;
      missing = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      if (byte == 0xE0) low = 0xA0;
      if (byte == 0xED) high = 0x9F;
      if (byte == 0xF0) low = 0x90;
      if (byte == 0xF4) high = 0x8F;
    }
    return true;
  }
};

// Of `open` + least to most characters but quotes + `close`: whether the bytes begin one.
bool begins(std::string_view text, int least, int most) {
  if (text.empty()) return true;
  if (text[0] != '"') return false;
  text.remove_prefix(1);
  const size_t end = text.find('"');
  Counted counted;
  if (!counted(text.substr(0, end))) return false;
  if (end == std::string_view::npos) return counted.characters + (counted.missing > 0) <= most;
  return end + 1 == text.size() && counted.missing == 0 && counted.characters >= least &&
         counted.characters <= most;
}

std::vector<std::string> texts_of_characters() {
  static const char* const kPieces[] = {
      "a",    "b",        "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9D\x84\x9E",
      "\"",   "\xC3",     "\xA9",     "\xE2\x82",     "\xF0\x9D",
      "\x84", "\xED\x9F", "\xF4\x8F", "\xE0\xA0",     "\x9E"};
  std::mt19937 random(7);
  std::vector<std::string> texts = test::all_bytes();
  for (size_t i = 0; i < 1200; ++i) {
    std::string text;
    for (size_t k = 2 + random() % 6; k > 0; --k) {
      text += kPieces[random() % (i % 2 == 0 ? 6 : std::size(kPieces))];
    }
    texts.push_back(text);
    if (i % 100 == 0) texts.push_back(text);  // a twin
  }
  for (size_t n = 2; n <= 24; ++n) texts.emplace_back(n, 'a');
  return texts;
}

TEST(CountedText, MasksAreWhatCountingSays) {
  const std::vector<std::string> texts = texts_of_characters();
  const auto vocabulary = test::vocabulary(texts);
  std::mt19937 random(8);
  for (const auto& [least, most] : {std::pair(0, 1), std::pair(0, 3), std::pair(0, 40),
                                    std::pair(2, 5), std::pair(7, 7), std::pair(12, 30)}) {
    const auto grammar = Grammar::from_gbnf(R"(root ::= "\"" [^"]{)" + std::to_string(least) + "," +
                                            std::to_string(most) + R"(} "\"")");
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    const auto over = grammar.value()->over(vocabulary).value();
    for (int round = 0; round < 6; ++round) {
      Matcher matcher = Matcher::create(over).value();
      std::string text;
      while (true) {
        std::vector<uint64_t> mask(vocabulary->words());
        ASSERT_TRUE(matcher.mask(mask).ok());
        std::vector<size_t> open;
        for (size_t token = 0; token < texts.size(); ++token) {
          const bool allowed = test::has(mask, static_cast<int32_t>(token));
          ASSERT_EQ(allowed, begins(text + texts[token], least, most))
              << least << " to " << most << " '" << text << "' + '" << texts[token] << "'";
          if (allowed && texts[token].size() < 12) open.push_back(token);
        }
        if (open.empty()) break;
        const size_t token = open[random() % open.size()];
        ASSERT_TRUE(matcher.accept_token(static_cast<int32_t>(token)).value());
        text += texts[token];
      }
      EXPECT_TRUE(matcher.is_complete());
    }
  }
}

}  // namespace
}  // namespace gen::grammar
