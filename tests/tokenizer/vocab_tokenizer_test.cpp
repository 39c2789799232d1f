// SPDX-License-Identifier: Apache-2.0
// What both kinds share: segments, flags, special tokens that eat white space, limits, the ids'
// meaning.
#include "tokenizer/vocab_tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::decode;
using test::encode;
using test::Ids;
using test::must_create;

// 256 ab, then 257 <x> control, 258 <y> user-defined
VocabSpec with_specials() {
  VocabSpec spec = test::bpe_vocab({"a b"});
  add_token(&spec, "<x>", TokenType::kControl);
  add_token(&spec, "<y>", TokenType::kUserDefined);
  return spec;
}

Ids encode_segments(const Tokenizer& tokenizer, const std::vector<TextSegment>& segments,
                    uint32_t flags = 0) {
  Ids ids;
  return tokenizer.encode_segments(segments, flags, kTextStart, &ids).ok() ? ids : Ids{-1};
}

TEST(VocabTokenizer, SegmentsAreOneText) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode_segments(*tokenizer, {{"a", false}, {"b", true}}), Ids{256});
  EXPECT_EQ(encode_segments(*tokenizer, {{"a", false}, {"", true}, {"b", false}}), Ids{256});
  EXPECT_EQ(encode_segments(*tokenizer, {}), Ids{});
}

TEST(VocabTokenizer, ControlTokensOnlyWhereAsked) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode_segments(*tokenizer, {{"<x>", true}, {"<x>", false}, {"<x>", true}}),
            (Ids{257, '<', 'x', '>', 257}));
  // not even when its text is put together from two segments
  EXPECT_EQ(encode_segments(*tokenizer, {{"<x", true}, {">", true}}), (Ids{'<', 'x', '>'}));
  EXPECT_EQ(encode_segments(*tokenizer, {{"<y>", false}}), Ids{258});
}

TEST(VocabTokenizer, UnknownFlags) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  Ids ids = {5};
  const Status status = tokenizer->encode("ab", 8, &ids);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "encode flags 0x8, known are 0x3");
  EXPECT_EQ(ids, Ids{5});
}

TEST(VocabTokenizer, TooLongAText) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  const std::string half(size_t{1} << 20, ' ');
  const std::vector<TextSegment> segments(1025, TextSegment{half, false});
  Ids ids;
  const Status status = tokenizer->encode_segments(segments, 0, kTextStart, &ids);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "text of more than 1073741824 bytes");
}

TEST(VocabTokenizer, BosOnlyIfThereIsOne) {
  VocabSpec spec = with_specials();
  EXPECT_EQ(encode(*must_create(spec), "ab", kAddBos), Ids{256});
  spec.bos = 0;  // id 0 is as good as any
  EXPECT_EQ(encode(*must_create(spec), "ab", kAddBos), (Ids{0, 256}));
}

// Phi-3: the line break after <|user|> belongs to the token.
TEST(VocabTokenizer, SpecialTokensThatEatWhiteSpace) {
  VocabSpec spec = with_specials();
  add_token(&spec, "<s>", TokenType::kControl);
  spec.special_strips_right = true;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "<x> \n\tab", kParseSpecial), (Ids{257, 256}));
  EXPECT_EQ(encode(*tokenizer, "<y> \n<y>"), (Ids{258, 258}));
  EXPECT_EQ(encode(*tokenizer, "<s>\nab", kParseSpecial), (Ids{259, '\n', 256}));
  EXPECT_EQ(encode_segments(*tokenizer, {{"<x>", true}, {"\n\n", false}, {"\nab", false}}),
            (Ids{257, 256}));
  spec.special_strips_right = false;
  EXPECT_EQ(encode(*must_create(spec), "<x>\nab", kParseSpecial), (Ids{257, '\n', 256}));
}

TEST(VocabTokenizer, SaysWhatIdsMean) {
  VocabSpec spec = with_specials();
  spec.bos = 257;
  spec.eos = 1;
  spec.unk = 2;
  spec.sep = 3;
  spec.pad = 4;
  spec.eot = 5;
  spec.eom = 6;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->vocab_size(), 259);
  EXPECT_EQ(tokenizer->special(Special::kBos), 257);
  EXPECT_EQ(tokenizer->special(Special::kEos), 1);
  EXPECT_EQ(tokenizer->special(Special::kUnk), 2);
  EXPECT_EQ(tokenizer->special(Special::kSep), 3);
  EXPECT_EQ(tokenizer->special(Special::kPad), 4);
  EXPECT_EQ(tokenizer->special(Special::kEot), 5);
  EXPECT_EQ(tokenizer->special(Special::kEom), 6);
  EXPECT_TRUE(tokenizer->is_control(257));
  for (const int32_t id : {256, 258, -1, 259, INT32_MIN, INT32_MAX}) {
    EXPECT_FALSE(tokenizer->is_control(id));
  }
  EXPECT_EQ(tokenizer->spec().tokens[256], "ab");
}

TEST(VocabTokenizer, IdsOutside) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  for (const int32_t id : {-1, 259, INT32_MIN, INT32_MAX}) {
    std::string out = "kept";
    const Status status = tokenizer->append_piece(id, -1, false, &out);
    EXPECT_EQ(status.code(), Code::kOutOfRange);
    EXPECT_EQ(std::string(status.message()),
              "token " + std::to_string(id) + " outside vocabulary of 259");
    const Ids ids = {256, id};
    EXPECT_FALSE(tokenizer->decode(ids, false, &out).ok());
    EXPECT_FALSE(tokenizer->decode_bytes(ids, false, &out).ok());
    EXPECT_EQ(out, "kept");
  }
}

TEST(VocabTokenizer, DecodingRepairsTextButNotBytes) {
  const auto tokenizer = must_create(with_specials());
  ASSERT_TRUE(tokenizer);
  const Ids ids = {'a', 0xE6, 0x97, 'b', 0xFF};
  EXPECT_EQ(decode(*tokenizer, ids),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  std::string bytes;
  ASSERT_TRUE(tokenizer->decode_bytes(ids, false, &bytes).ok());
  EXPECT_EQ(bytes,
            "a\xE6\x97"
            "b\xFF");
}

}  // namespace
}  // namespace gen::tokenizer
