// SPDX-License-Identifier: Apache-2.0
// What streams out are whole characters, and together they are what decode() gives, for any tokens.
#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::Ids;
using test::must_create;

std::vector<std::shared_ptr<const Tokenizer>> both_kinds() {
  VocabSpec bpe = test::bpe_vocab({"t h", "th e", "\xC3 \xA9"});
  test::add_token(&bpe, "<x>", TokenType::kControl);
  test::add_token(&bpe, "<y>", TokenType::kUserDefined);
  VocabSpec sp = test::sp_vocab({"_", "a", "_a", "__", "\xE6\x97\xA5"});
  test::add_token(&sp, "<y>", TokenType::kUserDefined);
  // In the byte alphabet U+00C3 and U+00A9 are the bytes C3 A9.
  bpe.merges[2] = "\xC3\x83 \xC2\xA9";
  bpe.tokens[258] = "\xC3\x83\xC2\xA9";
  return {must_create(bpe), must_create(sp)};
}

TEST(StreamDecoder, HoldsUnfinishedCharacters) {
  const auto tokenizer = both_kinds()[0];
  ASSERT_TRUE(tokenizer);
  StreamDecoder decoder(*tokenizer);
  std::string out;
  for (const int32_t id : {0xF0, 0x9F, 0xA6}) {
    ASSERT_TRUE(decoder.feed(id, &out).ok());
    EXPECT_EQ(out, "");
  }
  EXPECT_EQ(decoder.held(), 3U);
  ASSERT_TRUE(decoder.feed(0x99, &out).ok());
  EXPECT_EQ(out, "\xF0\x9F\xA6\x99");
  EXPECT_EQ(decoder.held(), 0U);
}

TEST(StreamDecoder, GivesUpOnWhatCannotBecomeACharacter) {
  const auto tokenizer = both_kinds()[0];
  ASSERT_TRUE(tokenizer);
  StreamDecoder decoder(*tokenizer);
  std::string out;
  ASSERT_TRUE(decoder.feed(0xFF, &out).ok());
  EXPECT_EQ(out, "\xEF\xBF\xBD");
  ASSERT_TRUE(decoder.feed(0xE6, &out).ok());
  ASSERT_TRUE(decoder.feed('a', &out).ok());
  EXPECT_EQ(out,
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "a");
  ASSERT_TRUE(decoder.feed(0xE6, &out).ok());
  decoder.flush(&out);
  decoder.flush(&out);
  EXPECT_EQ(out,
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
}

TEST(StreamDecoder, ABadIdChangesNothing) {
  const auto tokenizer = both_kinds()[0];
  ASSERT_TRUE(tokenizer);
  StreamDecoder decoder(*tokenizer);
  std::string out = "x";
  ASSERT_TRUE(decoder.feed(0xC3, &out).ok());
  EXPECT_EQ(decoder.feed(100000, &out).code(), Code::kOutOfRange);
  EXPECT_EQ(out, "x");
  EXPECT_EQ(decoder.held(), 1U);
  ASSERT_TRUE(decoder.feed(0xA9, &out).ok());
  EXPECT_EQ(out, "x\xC3\xA9");
}

// What follows a prompt keeps its space; the start of a text loses the one that encoding put there.
TEST(StreamDecoder, LeadingSpace) {
  const auto tokenizer = both_kinds()[1];
  ASSERT_TRUE(tokenizer);
  constexpr int32_t kSpaceA = 261;
  const auto first = [&](int32_t previous) {
    StreamDecoder decoder(*tokenizer, previous);
    std::string out;
    return decoder.feed(kSpaceA, &out).ok() ? out : "(failed)";
  };
  EXPECT_EQ(first(-1), "a");
  EXPECT_EQ(first(1), "a");  // after <s>
  EXPECT_EQ(first(kSpaceA), " a");
}

// Wherever a text is taken up again, both parts together are the whole.
TEST(StreamDecoder, ResumesInTheMiddleOfACharacter) {
  std::mt19937 random(44);
  for (const auto& tokenizer : both_kinds()) {
    ASSERT_TRUE(tokenizer);
    const int32_t shift = tokenizer->vocab_size() > 262 ? 3 : 0;
    for (int round = 0; round < 500; ++round) {
      Ids ids;
      for (size_t i = 0; i < 1 + random() % 12; ++i) {
        static constexpr int32_t kBytes[] = {0xF0, 0x9F, 0x98, 0x80, 0xE6, 0x97, 0xA5, 0xC3, 'a'};
        ids.push_back(kBytes[random() % 9] + shift);
      }
      const size_t cut = random() % (ids.size() + 1);
      std::string joined;
      StreamDecoder first(*tokenizer);
      for (size_t i = 0; i < cut; ++i) ASSERT_TRUE(first.feed(ids[i], &joined).ok());
      StreamDecoder second(*tokenizer);
      ASSERT_TRUE(second.resume(std::span(ids).first(cut)).ok());
      EXPECT_EQ(second.held(), first.held());
      for (size_t i = cut; i < ids.size(); ++i) ASSERT_TRUE(second.feed(ids[i], &joined).ok());
      second.flush(&joined);
      ASSERT_EQ(joined, test::decode(*tokenizer, ids, false));
    }
  }
}

TEST(StreamDecoder, ResumesBehindAnEndToken) {
  const auto tokenizer = both_kinds()[0];
  ASSERT_TRUE(tokenizer);
  const int32_t control = tokenizer->vocab_size() - 2;
  ASSERT_TRUE(tokenizer->is_control(control));
  StreamDecoder decoder(*tokenizer);
  ASSERT_TRUE(decoder.resume(Ids{0xF0, 0x9F, control}).ok());
  EXPECT_EQ(decoder.held(), 0U);
  ASSERT_TRUE(decoder.resume(Ids{control, 0xF0, 0x9F}).ok());
  EXPECT_EQ(decoder.held(), 2U);
  EXPECT_EQ(decoder.resume(Ids{100000}).code(), Code::kOutOfRange);
  EXPECT_EQ(decoder.held(), 2U);
  ASSERT_TRUE(decoder.resume({}).ok());
  EXPECT_EQ(decoder.held(), 0U);
}

// Fed in one go or taken up again behind it, a token without text ends an unfinished character.
TEST(StreamDecoder, ATokenWithoutTextFinishesACharacter) {
  const auto tokenizer = both_kinds()[0];
  ASSERT_TRUE(tokenizer);
  const int32_t control = tokenizer->vocab_size() - 2;
  std::string out;
  StreamDecoder decoder(*tokenizer);
  for (const int32_t id : {0xF0, 0x9F, control, 0x98}) {
    ASSERT_TRUE(decoder.feed(id, &out).ok());
  }
  EXPECT_EQ(out, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(decoder.held(), 0U);
}

TEST(StreamDecoder, EqualsDecodeForAnyTokens) {
  std::mt19937 random(43);
  for (const auto& tokenizer : both_kinds()) {
    ASSERT_TRUE(tokenizer);
    for (int round = 0; round < 2000; ++round) {
      const bool special_as_text = round % 2 == 0;
      Ids ids;
      for (size_t i = 0; i < random() % 24; ++i) {
        // mostly bytes, so that characters begin, break off and end
        const bool any = random() % 3 == 0;
        const uint32_t byte = random() % 2 == 0 ? 0x80 + random() % 0x40 : 0xC0 + random() % 0x40;
        const int32_t shift = tokenizer->vocab_size() > 262 ? 3 : 0;
        ids.push_back(any ? static_cast<int32_t>(random()) & 255
                          : static_cast<int32_t>(byte) + shift);
        if (random() % 8 == 0)
          ids.back() = tokenizer->vocab_size() - 1 - static_cast<int32_t>(random() % 6);
      }
      StreamDecoder decoder(*tokenizer, -1, special_as_text);
      std::string streamed;
      bool textless = false;  // a token without text may have broken up a character
      for (const int32_t id : ids) {
        std::string piece;
        ASSERT_TRUE(tokenizer->append_piece(id, id, special_as_text, &piece).ok());
        textless |= piece.empty();
        piece.clear();
        ASSERT_TRUE(decoder.feed(id, &piece).ok());
        ASSERT_TRUE(utf8_valid(piece));
        ASSERT_LE(decoder.held(), 3U);
        streamed += piece;
      }
      decoder.flush(&streamed);
      EXPECT_EQ(streamed, test::decode(*tokenizer, ids, special_as_text));
      std::string bytes;
      ASSERT_TRUE(tokenizer->decode_bytes(ids, special_as_text, &bytes).ok());
      if (utf8_valid(bytes) && !textless) {
        EXPECT_EQ(streamed, bytes);
      }
    }
  }
}

}  // namespace
}  // namespace gen::tokenizer
