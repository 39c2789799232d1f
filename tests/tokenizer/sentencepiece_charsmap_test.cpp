// SPDX-License-Identifier: Apache-2.0
// Charsmap on tries put together by hand: sound ones, and each way to lead a reader astray. Maps of
// real models are read in sentencepiece_library_test.cpp.
#include "tokenizer/sentencepiece_charsmap.h"

#include <gtest/gtest.h>

#include <vector>

namespace gen::tokenizer {
namespace {

// A unit with label `label` whose children start at its own index ^ `offset`.
uint32_t unit(uint32_t offset, uint32_t label, bool has_value) {
  return (offset << 10) | (has_value ? 0x100U : 0) | label;
}
uint32_t value(uint32_t v) { return 0x80000000U | v; }

std::string charsmap(const std::vector<uint32_t>& units, std::string_view texts) {
  std::string out;
  const auto put = [&](uint32_t v) {
    for (uint32_t shift = 0; shift < 32; shift += 8) out += static_cast<char>((v >> shift) & 0xFF);
  };
  put(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t u : units) put(u);
  return out.append(texts);
}

// Units of no use look like values, which no byte leads to. The one key "A", value at text 2 ("b"):
// root leads to position 256, 'A' from there to 512.
std::vector<uint32_t> one_key() {
  std::vector<uint32_t> units(768, value(0));
  units[0] = unit(256, 0, false);
  units[256 ^ 'A'] = unit((256 ^ 'A') ^ 512, 'A', true);
  units[512] = value(2);
  return units;
}

constexpr std::string_view kTexts("a\0b\0", 4);

Status check(const std::string& file) { return Charsmap::create(file).status(); }

// What the longest key at the beginning of `text` becomes, with its bytes; "-" for none.
std::string replace(const Charsmap& map, std::string_view text) {
  const Charsmap::Match match = map.longest(text);
  return match.bytes == 0 ? "-" : std::to_string(match.bytes) + std::string(match.replacement);
}

TEST(Charsmap, Sound) {
  auto map = Charsmap::create("");
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map.value().empty());
  EXPECT_EQ(replace(map.value(), "A"), "-");
  map = Charsmap::create(charsmap(one_key(), kTexts));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_FALSE(map.value().empty());
  EXPECT_EQ(replace(map.value(), "A"), "1b");
  EXPECT_EQ(replace(map.value(), "AA"), "1b");
  EXPECT_EQ(replace(map.value(), "BA"), "-");
  EXPECT_EQ(replace(map.value(), ""), "-");
  EXPECT_EQ(replace(map.value(), std::string_view("\0", 1)), "-");
}

// "A" and "B" lead to one place, where "C" ends both keys: the builder shares equal ends.
TEST(Charsmap, SharedEnds) {
  std::vector<uint32_t> units(1024, value(0));
  units[0] = unit(256, 0, false);
  units[256 ^ 'A'] = unit((256 ^ 'A') ^ 512, 'A', false);
  units[256 ^ 'B'] = unit((256 ^ 'B') ^ 512, 'B', true);
  units[512 ^ 'C'] = unit((512 ^ 'C') ^ 768, 'C', true);
  units[768] = value(2);
  const auto map = Charsmap::create(charsmap(units, kTexts));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(replace(map.value(), "ACX"), "2b");
  EXPECT_EQ(replace(map.value(), "BCX"), "2b");
  EXPECT_EQ(replace(map.value(), "AX"), "-");
  EXPECT_EQ(replace(map.value(), "BX"), "1a");
  EXPECT_EQ(replace(map.value(), "B"), "1a");
}

TEST(Charsmap, Broken) {
  const auto message = [](const std::string& map) {
    return std::string(check(map).message()).substr(sizeof "sentencepiece normalizer map: " - 1);
  };
  const std::string good = charsmap(one_key(), kTexts);
  EXPECT_EQ(message(good.substr(0, 4)), "too short");
  EXPECT_EQ(message(good.substr(0, 2000)), "size of the trie");
  EXPECT_EQ(message(good.substr(0, good.size() - 4)), "size of the trie");  // no texts at all
  EXPECT_EQ(message(good.substr(0, good.size() - 1)), "texts do not end with a zero byte");
  std::string odd = good;
  odd[0] = 1;
  EXPECT_EQ(message(odd), "size of the trie");
  odd = good;
  odd[3] = '\x7F';
  EXPECT_EQ(message(odd), "size of the trie");

  auto units = one_key();
  units[512] = value(4);
  EXPECT_EQ(message(charsmap(units, kTexts)), "text outside");
  units[512] = value(1);
  EXPECT_EQ(message(charsmap(units, kTexts)), "value in the middle of a text");
  EXPECT_EQ(message(charsmap(one_key(), std::string_view("a\0\xFF\0", 4))), "texts are not utf-8");
  EXPECT_EQ(message(charsmap(one_key(), std::string(255, 'a') + '\0')),
            "value in the middle of a text");
  EXPECT_EQ(message(charsmap(one_key(), std::string(256, 'a') + '\0')), "text too long");
  units = one_key();
  units[0] = unit(768, 0, false);
  EXPECT_EQ(message(charsmap(units, kTexts)), "trie leads outside");
  units = one_key();
  units[256 ^ 'A'] = unit((256 ^ 'A') ^ 768, 'A', false);
  EXPECT_EQ(message(charsmap(units, kTexts)), "trie leads outside");
  units = one_key();
  units[256 ^ 'A'] = unit('A', 'A', false);  // back to position 256
  EXPECT_EQ(message(charsmap(units, kTexts)), "trie has a loop");
  units.resize((1 << 20) + 256, value(0));
  EXPECT_STREQ(check(charsmap(units, kTexts)).message(),
               "sentencepiece normalizer map of 1048832 units, limit 1048576");
}

// The keys "A", "AA", "AAA", …: the longest one of those that the text begins with counts.
TEST(Charsmap, NestedKeys) {
  for (const uint32_t count : {255U, 256U}) {
    std::vector<uint32_t> units((count + 2) * 256, value(0));
    units[0] = unit(256, 0, false);
    for (uint32_t depth = 0; depth < count; ++depth) {
      const uint32_t at = ((depth + 1) * 256) ^ 'A';
      units[at] = unit(at ^ ((depth + 2) * 256), 'A', true);
      units[(depth + 2) * 256] = value(depth == 6 ? 2 : 0);
    }
    const auto map = Charsmap::create(charsmap(units, kTexts));
    ASSERT_EQ(map.ok(), count == 255);
    if (!map.ok()) {
      EXPECT_STREQ(map.status().message(), "sentencepiece normalizer map: key too long");
      continue;
    }
    EXPECT_EQ(replace(map.value(), "AAAAAA"), "6a");
    EXPECT_EQ(replace(map.value(), "AAAAAAAB"), "7b");
    EXPECT_EQ(replace(map.value(), std::string(300, 'A')), "255a");
  }
}

}  // namespace
}  // namespace gen::tokenizer
