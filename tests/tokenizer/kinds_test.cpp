// SPDX-License-Identifier: Apache-2.0
// Kinds of vocabularies with a few tokens made by hand: WordPiece, RWKV, unigram, BPE without
// merges, over words of characters, and with DNA. Ids of larger ones are compared in
// model/gguf_vocab_kinds_test.cpp.
#include <gtest/gtest.h>

#include <cstdio>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::decode;
using test::encode;
using test::Ids;
using test::must_create;

VocabSpec of_kind(VocabKind kind, const std::vector<std::string>& tokens) {
  VocabSpec spec;
  spec.kind = kind;
  for (const std::string& text : tokens) add_token(&spec, text, TokenType::kNormal);
  return spec;
}

std::string failure_of(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids = {7};
  const Status status = tokenizer.encode(text, 0, &ids);
  EXPECT_EQ(ids, Ids{7});  // as it was
  return status.ok() ? "" : status.message();
}

TEST(Kinds, WordPieceTakesTheLongestOfEachWord) {
  VocabSpec spec = of_kind(VocabKind::kWordPiece,
                           {"\xE2\x96\x81un", "\xE2\x96\x81u", "a", "able", "\xE2\x96\x81!", "ab"});
  const auto strict = must_create(spec);
  ASSERT_TRUE(strict);
  EXPECT_EQ(encode(*strict, "Unable una!u"), (Ids{0, 3, 0, 2, 4, 1}));
  EXPECT_EQ(failure_of(*strict, "u x"), "text holds a word that the vocabulary cannot express");
  spec.unk = add_token(&spec, "[UNK]", TokenType::kUnknown);
  const auto lenient = must_create(spec);
  ASSERT_TRUE(lenient);
  EXPECT_EQ(encode(*lenient, "u unx abs u"), (Ids{1, 6, 6, 1}));
  EXPECT_EQ(encode(*lenient, "[UNK]"), (Ids{6, 6, 6}));  // a text names no special token
  EXPECT_EQ(encode(*lenient, "u[UNK]u", kParseSpecial), (Ids{1, 6, 1}));
  EXPECT_EQ(decode(*lenient, {0, 3, 4, 1}), "unable ! u");
}

TEST(Kinds, RwkvTakesTheLongestFromTheFront) {
  VocabSpec spec =
      of_kind(VocabKind::kRwkv, {"a", "ab", "abcd", "\\n\\n", "\\xc3", "\\xA9", "\\\\", "\\'"});
  const auto strict = must_create(spec);
  ASSERT_TRUE(strict);
  EXPECT_EQ(encode(*strict, "abcdaab\n\n\xC3\xA9\\'"), (Ids{2, 0, 1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(decode(*strict, {2, 0, 3, 4, 5, 6, 7}), "abcda\n\n\xC3\xA9\\'");
  EXPECT_EQ(failure_of(*strict, "ab\n"), "vocabulary has no token for byte 0x0a");
  spec.unk = 0;
  EXPECT_EQ(encode(*must_create(spec), "abc\n"), (Ids{1, 0, 0}));
  for (const char* broken : {"x\\", "\\x", "\\xg0", "\\x4"}) {
    spec.tokens[2] = broken;
    const auto made = create_tokenizer(spec);
    ASSERT_FALSE(made.ok()) << broken;
    EXPECT_EQ(made.status().code(), Code::kFormat);
    EXPECT_STREQ(made.status().message(), "token 2 has a broken escape");
  }
}

TEST(Kinds, UnigramTakesTheBestSum) {
  VocabSpec spec = of_kind(VocabKind::kUnigram, {"\xE2\x96\x81", "a", "b", "ab",
                                                 "\xE2\x96\x81"
                                                 "a"});
  spec.scores = {-1, -2, -3, -4, -5};
  spec.add_space_prefix = true;
  spec.unk = add_token(&spec, "<unk>", TokenType::kUnknown);
  const auto made = must_create(spec);
  ASSERT_TRUE(made);
  EXPECT_EQ(encode(*made, "a"), (Ids{0, 1}));   // -3, not -5
  EXPECT_EQ(encode(*made, "ab"), (Ids{0, 3}));  // -5, not -6
  EXPECT_EQ(encode(*made, "axyb"), (Ids{0, 1, 5, 2}));
  spec.charsmap = "\x04";
  const auto damaged = create_tokenizer(spec);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.status().code(), Code::kFormat);
}

TEST(Kinds, Plamo2TakesTheBestSumAndTheLongestOfEquals) {
  VocabSpec spec;
  spec.kind = VocabKind::kPlamo2;
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    add_token(&spec, name, TokenType::kByte);
  }
  const auto piece = [&](const char* text, float score, TokenType type = TokenType::kNormal) {
    const int32_t id = add_token(&spec, text, type);
    spec.scores.back() = score;
    return id;
  };
  const int32_t a = piece("a", -3);
  const int32_t b = piece("b", -3);
  const int32_t ab = piece("ab", -6);  // as a and b together
  const int32_t aba = piece("aba", -9.5F);
  piece("c", -2000);  // worse than the byte of any character, as is what follows
  piece("d", -1000.01F);
  const int32_t e = piece("e", -999.9F);
  const int32_t bos = piece("<bos>", 0, TokenType::kControl);
  const auto made = must_create(spec);
  ASSERT_TRUE(made);
  EXPECT_EQ(encode(*made, "ab"), Ids{ab});
  EXPECT_EQ(encode(*made, "aba"), (Ids{ab, a}));  // -9, not -9.5
  EXPECT_EQ(encode(*made, "bab"), (Ids{b, ab}));
  EXPECT_EQ(encode(*made, "cde"), (Ids{'c', 'd', e}));
  EXPECT_EQ(encode(*made, "\xE4\xBD\xA0"), (Ids{0xE4, 0xBD, 0xA0}));
  EXPECT_EQ(encode(*made, "<bos>").size(), 5U);  // a text names no special token
  EXPECT_EQ(encode(*made, "a<bos>b", kParseSpecial), (Ids{a, bos, b}));
  EXPECT_EQ(encode(*made,
                   "\xEF\xBB\xBF"
                   "a"),
            Ids{a});  // a byte order mark is no text
  EXPECT_EQ(encode(*made, "a\xEF\xBB\xBF"), (Ids{a, 0xEF, 0xBB, 0xBF}));
  EXPECT_EQ(decode(*made, {ab, 0xE4, 0xBD, 0xA0, aba, '\n'}),
            "ab\xE4\xBD\xA0"
            "aba\n");
  VocabSpec without = of_kind(VocabKind::kPlamo2, {"a"});
  const auto refused = create_tokenizer(without);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kFormat);
  EXPECT_STREQ(refused.status().message(), "vocabulary has byte tokens for 0 of 256 bytes");
}

TEST(Kinds, WithoutMergesTheLowerIdIsJoinedFirst) {
  VocabSpec spec = test::bpe_vocab({});
  for (const char* text : {"bc", "ab", "abc", "cd", "abcde"}) {
    add_token(&spec, text, TokenType::kNormal);
  }
  const auto made = must_create(spec);
  ASSERT_TRUE(made);
  EXPECT_EQ(encode(*made, "abc"), Ids{258});          // bc, then a with it
  EXPECT_EQ(encode(*made, "abcd"), (Ids{258, 'd'}));  // bc before ab and cd
  EXPECT_EQ(encode(*made, "abcde"), Ids{260});  // no two parts make it, but the word is a token
  EXPECT_EQ(encode(*made, "xabcde"), (Ids{'x', 258, 'd', 'e'}));
  EXPECT_EQ(encode(*made, "\xC3\xA9"), (Ids{0xC3, 0xA9}));
}

TEST(Kinds, WhiteSpaceOnlyEndsWords) {
  VocabSpec spec = of_kind(VocabKind::kTextBpe, {"a", "b", "\xC3\xA9", "ab", "\xE2\x96\x81"});
  spec.pre = kPreWhitespace;
  spec.merges = {"a b"};
  spec.lowercase = false;
  const auto strict = must_create(spec);
  ASSERT_TRUE(strict);
  EXPECT_EQ(encode(*strict, "ab a\n\nb\xE3\x80\x80 \xC3\xA9\t"), (Ids{3, 0, 1, 2}));
  EXPECT_EQ(encode(*strict, "\xE2\x96\x81"), Ids{4});  // not a space
  EXPECT_EQ(decode(*strict, {3, 0, 4}), "aba\xE2\x96\x81");
  EXPECT_EQ(encode(*strict, " \n"), Ids{});
  EXPECT_EQ(failure_of(*strict, "Ab"), "vocabulary has no token for byte 0x41");
  spec.unk = add_token(&spec, "<unk>", TokenType::kUnknown);
  EXPECT_EQ(encode(*must_create(spec), "A\xE4\xBD\xA0 b"), (Ids{5, 5, 1}));  // for each character
  spec.lowercase = true;
  EXPECT_EQ(encode(*must_create(spec), "AB \xC3\x89"), (Ids{3, 2}));
}

// What the family's own tokenizer does where llama.cpp differs, or what no golden text has.
TEST(Kinds, DnaIsTakenInSixes) {
  constexpr const char* kMark = "\xEE\x80\x80";
  VocabSpec spec = test::bpe_vocab({"C C"});
  spec.kind = VocabKind::kHybridDna;
  const int32_t letters = add_token(&spec, "CCCCCC", TokenType::kNormal);
  const int32_t begin = add_token(&spec, "<dna>", TokenType::kControl);
  const int32_t end = add_token(&spec, "</dna>", TokenType::kUserDefined);
  const int32_t none = add_token(&spec, "<oov>", TokenType::kNormal);
  const int32_t c6 = add_token(&spec, std::string("CCCCCC") + kMark, TokenType::kNormal);
  const int32_t ga = add_token(&spec, std::string("GAAAAA") + kMark, TokenType::kNormal);
  const int32_t nn = add_token(&spec, std::string("NNNNNN") + kMark, TokenType::kNormal);
  const auto made = must_create(spec);
  ASSERT_TRUE(made);
  for (const uint32_t flags : {0U, uint32_t{kParseSpecial}}) {
    EXPECT_EQ(encode(*made, "<dna>ccccccg</dna>CC", flags), (Ids{begin, c6, ga, end, 256}));
    EXPECT_EQ(encode(*made, "CC<dna>CCCCCCNNNNNNGAAAAT", flags), (Ids{256, begin, c6, none, none}));
    EXPECT_EQ(encode(*made, "<dna> \nG\t</dna>", flags), (Ids{begin, ga, end}));
    EXPECT_EQ(encode(*made, "<dna>\xC3\xA9\xC3\xA9\xC3\xA9</dna>", flags), (Ids{begin, none, end}));
    EXPECT_EQ(encode(*made, "CCCCCCg</dna>C", flags), (Ids{c6, ga, end, 'C'}));
    EXPECT_EQ(encode(*made, "<dna></dna><dna>", flags), (Ids{begin, end, begin}));
    EXPECT_EQ(encode(*made, "<dna>C<dna>C</dna>", flags), (Ids{begin, none, none, end}));
  }
  EXPECT_EQ(decode(*made, {begin, c6, ga, nn, none, end, letters, 'C'}),
            "<dna>CCCCCCGAAAAANNNNNN<oov></dna>CCCCCCC");
  spec.tokens[static_cast<size_t>(none)] = "<out>";
  EXPECT_EQ(encode(*must_create(spec), "<dna>C"), (Ids{'<', 'd', 'n', 'a', '>', 'C'}));
}

}  // namespace
}  // namespace gen::tokenizer
