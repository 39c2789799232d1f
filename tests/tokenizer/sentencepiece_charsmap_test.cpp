// SPDX-License-Identifier: Apache-2.0
// check_charsmap on tries put together by hand: a sound one, and each way to lead the library
// astray.
#include <gtest/gtest.h>

#include <vector>

#include "tokenizer/sentencepiece_proto.h"

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

TEST(Charsmap, Sound) {
  EXPECT_TRUE(check_charsmap("").ok());
  EXPECT_STREQ(check_charsmap(charsmap(one_key(), kTexts)).message(), "");
}

// "A" and "B" lead to one place, where "C" ends both keys: the builder shares equal ends.
TEST(Charsmap, SharedEnds) {
  std::vector<uint32_t> units(1024, value(0));
  units[0] = unit(256, 0, false);
  units[256 ^ 'A'] = unit((256 ^ 'A') ^ 512, 'A', false);
  units[256 ^ 'B'] = unit((256 ^ 'B') ^ 512, 'B', true);
  units[512 ^ 'C'] = unit((512 ^ 'C') ^ 768, 'C', true);
  units[768] = value(2);
  EXPECT_STREQ(check_charsmap(charsmap(units, kTexts)).message(), "");
}

TEST(Charsmap, Broken) {
  const auto message = [](const std::string& map) {
    return std::string(check_charsmap(map).message())
        .substr(sizeof "sentencepiece normalizer map: " - 1);
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
  EXPECT_STREQ(check_charsmap(charsmap(units, kTexts)).message(),
               "sentencepiece normalizer map of 1048832 units, limit 1048576");
}

// The keys "A", "AA", "AAA", …: the library keeps room for 32 that match at one place.
TEST(Charsmap, NestedKeys) {
  for (const uint32_t count : {32U, 33U}) {
    std::vector<uint32_t> units((count + 2) * 256, value(0));
    units[0] = unit(256, 0, false);
    for (uint32_t depth = 0; depth < count; ++depth) {
      const uint32_t at = ((depth + 1) * 256) ^ 'A';
      units[at] = unit(at ^ ((depth + 2) * 256), 'A', true);
      units[(depth + 2) * 256] = value(0);
    }
    const Status status = check_charsmap(charsmap(units, kTexts));
    EXPECT_EQ(status.ok(), count == 32) << status.message();
  }
}

}  // namespace
}  // namespace gen::tokenizer
