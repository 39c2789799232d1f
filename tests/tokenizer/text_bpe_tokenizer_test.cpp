// SPDX-License-Identifier: Apache-2.0
// BPE over characters as a whole: ids worked out by hand from the merges, runs of line breaks,
// bytes of characters without a token, round trips of random texts, and the same ids where a long
// text is encoded word by word.
#include "tokenizer/text_bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::decode;
using test::encode;
using test::Ids;
using test::must_create;

/// 0 to 255 the bytes, then characters, then what merges make; a space is written as "_" here.
VocabSpec vocab(const std::vector<std::string>& characters,
                const std::vector<std::string>& merges) {
  const auto signs = [](const std::string& text) {
    std::string out;
    for (const char c : text) c == '_' ? out.append("\xE2\x96\x81") : out.append(1, c);
    return out;
  };
  VocabSpec spec;
  spec.kind = VocabKind::kTextBpe;
  for (uint32_t b = 0; b < 256; ++b) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    add_token(&spec, {'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'}, TokenType::kByte);
  }
  for (const std::string& text : characters) add_token(&spec, signs(text), TokenType::kNormal);
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    const std::string joined = merge.substr(0, space) + merge.substr(space + 1);
    const std::string text = signs(joined);
    if (std::find(spec.tokens.begin(), spec.tokens.end(), text) == spec.tokens.end()) {
      add_token(&spec, text, TokenType::kNormal);
    }
    spec.merges.push_back(signs(merge));
  }
  return spec;
}

// 256 _, 257 t, 258 h, 259 e, 260 é, 261 line break; 262 th, 263 the, 264 _t, 265 _the, 266 __,
// 267 two line breaks, 268 "e_"
VocabSpec english() {
  return vocab({"_", "t", "h", "e", "é", "\n"},
               {"t h", "th e", "_ t", "_ the", "_ _", "\n \n", "e _"});
}

TEST(TextBpeTokenizer, IdsByHand) {
  const auto tokenizer = must_create(english());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
  EXPECT_EQ(encode(*tokenizer, "the"), Ids{263});
  // "t h" goes first, so " t" never comes to be.
  EXPECT_EQ(encode(*tokenizer, " the"), Ids{265});
  EXPECT_EQ(encode(*tokenizer, " te"), (Ids{264, 259}));
  // Nothing keeps words apart: a merge over a space happens.
  EXPECT_EQ(encode(*tokenizer, "e e"), (Ids{268, 259}));
  EXPECT_EQ(encode(*tokenizer, "the the"), (Ids{263, 265}));
  EXPECT_EQ(encode(*tokenizer, "   "), (Ids{266, 256}));
  // What has no token is bytes, between which nothing merges.
  EXPECT_EQ(encode(*tokenizer, "tzh\u00e9\u4e2d"), (Ids{257, 'z', 258, 260, 0xE4, 0xB8, 0xAD}));
  EXPECT_EQ(decode(*tokenizer, {263, 265, 266, 0xE4, 0xB8, 0xAD, 267}), "the the  \u4e2d\n\n");
}

TEST(TextBpeTokenizer, LineBreaks) {
  VocabSpec spec = english();
  add_token(&spec, "\n\n\n\n\n", TokenType::kUserDefined);          // 269
  add_token(&spec, "\u2581\u2581\u2581", TokenType::kUserDefined);  // 270
  add_token(&spec, "\n\n\n\n", TokenType::kNormal);                 // 271, which no merge makes
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "\n\n\n\n"), Ids{271});
  EXPECT_EQ(encode(*tokenizer, "the\nthe"), (Ids{263, 261, 263}));
  EXPECT_EQ(encode(*tokenizer, "\n\n"), Ids{267});
  EXPECT_EQ(encode(*tokenizer, "\n\n\n"), (Ids{267, 261}));
  EXPECT_EQ(encode(*tokenizer, "t\n\n\n\n\nt"), (Ids{257, 269, 257}));
  EXPECT_EQ(encode(*tokenizer, "\n\n\n\n\n\n"), (Ids{269, 261}));
  // Spaces of a text are merged; the token of three is one of a text with the signs.
  EXPECT_EQ(encode(*tokenizer, "\u2581\u2581\u2581"), Ids{270});
  EXPECT_EQ(decode(*tokenizer, {270, 269}), "   \n\n\n\n\n");
}

TEST(TextBpeTokenizer, ByteWithoutAToken) {
  VocabSpec spec = english();
  spec.tokens.erase(spec.tokens.begin(), spec.tokens.begin() + 256);
  spec.types.erase(spec.types.begin(), spec.types.begin() + 256);
  spec.scores.clear();
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  Ids ids = {3};
  const Status status = tokenizer->encode("the z", 0, &ids);
  EXPECT_EQ(status.code(), Code::kTokenizer);
  EXPECT_STREQ(status.message(), "vocabulary has no token for byte 0x7a");
  EXPECT_EQ(ids, Ids{3});
  spec.unk = 3;
  EXPECT_EQ(encode(*must_create(spec), "thez"), (Ids{7, 3}));
}

TEST(TextBpeTokenizer, MergesThatAreNone) {
  for (const auto& [merge, message] :
       {std::pair{"t", "merge 7 is not two tokens"},
        std::pair{"t q", "merge 7: its right token is not in the vocabulary"},
        std::pair{"h t", "merge 7: its result is not in the vocabulary"}}) {
    VocabSpec spec = english();
    spec.merges.emplace_back(merge);
    const auto made = create_tokenizer(spec);
    EXPECT_EQ(made.status().code(), Code::kFormat);
    EXPECT_STREQ(made.status().message(), message);
  }
}

/// The pair of lowest rank is joined, the leftmost of equals, over the whole line.
Ids slowly(const VocabSpec& spec, const std::string& text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(c == ' ' ? "\xE2\x96\x81" : std::string(1, c));
  while (true) {
    size_t best = spec.merges.size();
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string merge = parts[i] + " " + parts[i + 1];
      const auto found = std::find(spec.merges.begin(), spec.merges.end(), merge);
      const auto rank = static_cast<size_t>(found - spec.merges.begin());
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == spec.merges.size()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), part);
    ids.push_back(static_cast<int32_t>(found - spec.tokens.begin()));
  }
  return ids;
}

TEST(TextBpeTokenizer, RandomTextsAreThoseOfTheDefinition) {
  const VocabSpec spec =
      vocab({"_", "a", "b", "c", "\n"},
            {"a b", "_ a", "_ _", "b c", "ab _", "_a bc", "c c", "\n \n", "__ a", "cc _", "__ __"});
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::string text;
    const size_t length = trial % 10 == 0 ? 400 : random() % 20;
    // Two of three letters belong to no merge with each other, so that there are cuts.
    for (size_t i = 0; i < length; ++i) text.push_back("  abc\n"[random() % 6]);
    EXPECT_EQ(encode(*tokenizer, text), slowly(spec, text)) << text;
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text);
  }
}

}  // namespace
}  // namespace gen::tokenizer
