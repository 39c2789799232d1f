// SPDX-License-Identifier: Apache-2.0
// The byte alphabet against GPT-2's description of it and against entries of its published
// vocabulary.
#include "tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

TEST(ByteAlphabet, IsGpt2s) {
  const ByteAlphabet alphabet;
  const auto characters = test::byte_characters();
  for (uint32_t b = 0; b < 256; ++b) {
    EXPECT_EQ(test::utf8_of(alphabet.character(static_cast<uint8_t>(b))), characters[b]) << b;
    EXPECT_EQ(alphabet.byte(alphabet.character(static_cast<uint8_t>(b))), static_cast<int32_t>(b));
    EXPECT_EQ(alphabet.to_bytes(characters[b]), std::string(1, static_cast<char>(b)));
  }
  EXPECT_EQ(alphabet.character(' '), 0x120U);   // "Ġ"
  EXPECT_EQ(alphabet.character('\n'), 0x10AU);  // "Ċ"
  EXPECT_EQ(alphabet.to_bytes("\xC4\xA0the"), " the");
}

TEST(ByteAlphabet, OtherCharactersStandForThemselves) {
  const ByteAlphabet alphabet;
  EXPECT_EQ(alphabet.byte(0x144), -1);
  EXPECT_EQ(alphabet.byte(0x10FFFF), -1);
  EXPECT_EQ(alphabet.byte(' '), -1);
  EXPECT_EQ(alphabet.to_bytes("a \xE6\x97\xA5\xF0\x9F\xA6\x99"), "a \xE6\x97\xA5\xF0\x9F\xA6\x99");
}

}  // namespace
}  // namespace gen::tokenizer
