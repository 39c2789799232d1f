// SPDX-License-Identifier: Apache-2.0
// Hostile vocabularies are refused with one line that names the entry, and nothing is printed,
// neither by us nor by libsentencepiece.
#include "tokenizer/vocab_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::bpe_vocab;
using test::sp_vocab;

struct Hostile {
  const char* name;
  VocabSpec (*base)();
  std::function<void(VocabSpec*)> harm;
  Code code;
  const char* message;
};

VocabSpec good_bpe() { return bpe_vocab({"t h", "th e"}); }
VocabSpec good_sp() { return sp_vocab({"_a", "ab", "_ab"}); }

const std::vector<Hostile>& hostile_vocabularies() {
  static const std::vector<Hostile> table = {
      {"no tokens, bpe", good_bpe, [](VocabSpec* s) { s->tokens.clear(); }, Code::kFormat,
       "vocabulary has no tokens"},
      {"no tokens, sp", good_sp, [](VocabSpec* s) { *s = VocabSpec{}; }, Code::kFormat,
       "vocabulary has no tokens"},
      {"empty token", good_sp, [](VocabSpec* s) { s->tokens[260].clear(); }, Code::kFormat,
       "token 260 is empty"},
      {"empty token, bpe", good_bpe, [](VocabSpec* s) { s->tokens[7].clear(); }, Code::kFormat,
       "token 7 is empty"},
      {"huge token", good_sp, [](VocabSpec* s) { s->tokens[260].assign(1 << 20, 'x'); },
       Code::kFormat, "token 260 has 1048576 bytes, limit 4096"},
      {"token one byte too long", good_bpe, [](VocabSpec* s) { s->tokens[7].assign(4097, 'x'); },
       Code::kFormat, "token 7 has 4097 bytes, limit 4096"},
      {"broken utf-8", good_sp, [](VocabSpec* s) { s->tokens[260] = "a\xFF"; }, Code::kFormat,
       "token 260 is not UTF-8 at byte 1"},
      {"repeated token", good_sp, [](VocabSpec* s) { s->tokens[261] = s->tokens[259]; },
       Code::kFormat, "token 261 repeats token 259"},
      {"repeated control token", good_sp, [](VocabSpec* s) { s->tokens[2] = "<s>"; }, Code::kFormat,
       "token 2 repeats token 1"},
      {"repeated byte token", good_sp, [](VocabSpec* s) { s->tokens[4] = "<0x00>"; }, Code::kFormat,
       "token 4 repeats token 3"},
      {"too few scores", good_sp, [](VocabSpec* s) { s->scores.pop_back(); }, Code::kFormat,
       "vocabulary has 261 scores for 262 tokens"},
      {"no scores", good_sp, [](VocabSpec* s) { s->scores.clear(); }, Code::kFormat,
       "vocabulary has 0 scores for 262 tokens"},
      {"too many scores, bpe", good_bpe, [](VocabSpec* s) { s->scores.push_back(0); },
       Code::kFormat, "vocabulary has 259 scores for 258 tokens"},
      {"score is no number", good_sp,
       [](VocabSpec* s) { s->scores[259] = std::numeric_limits<float>::quiet_NaN(); },
       Code::kFormat, "score of token 259 is not a finite number"},
      {"score is infinite", good_bpe,
       [](VocabSpec* s) { s->scores[5] = -std::numeric_limits<float>::infinity(); }, Code::kFormat,
       "score of token 5 is not a finite number"},
      {"too few types", good_sp, [](VocabSpec* s) { s->types.pop_back(); }, Code::kFormat,
       "vocabulary has 261 token types for 262 tokens"},
      {"no types", good_sp, [](VocabSpec* s) { s->types.clear(); }, Code::kFormat,
       "vocabulary has 0 token types for 262 tokens"},
      {"type 7", good_sp, [](VocabSpec* s) { s->types[261] = static_cast<TokenType>(7); },
       Code::kFormat, "token 261 has type 7, known are 1 to 6"},
      {"type -1", good_bpe, [](VocabSpec* s) { s->types[3] = static_cast<TokenType>(-1); },
       Code::kFormat, "token 3 has type -1, known are 1 to 6"},
      {"byte token in lower case", good_sp, [](VocabSpec* s) { s->tokens[14] = "<0x0b>"; },
       Code::kFormat, "byte token 14 is not of the form <0x0A>"},
      {"byte token too long", good_sp, [](VocabSpec* s) { s->tokens[14] = "<0x00B>"; },
       Code::kFormat, "byte token 14 is not of the form <0x0A>"},
      {"byte token of letters", good_sp, [](VocabSpec* s) { s->tokens[14] = "<0xZZ>"; },
       Code::kFormat, "byte token 14 is not of the form <0x0A>"},
      {"byte token negative", good_bpe,
       [](VocabSpec* s) { test::add_token(s, "<0x-1>", TokenType::kByte); }, Code::kFormat,
       "byte token 258 is not of the form <0x0A>"},
      {"a byte missing", good_sp, [](VocabSpec* s) { s->types[100] = TokenType::kNormal; },
       Code::kFormat, "vocabulary has byte tokens for 255 of 256 bytes"},
      {"bos outside", good_sp, [](VocabSpec* s) { s->bos = 262; }, Code::kFormat,
       "bos token 262 outside vocabulary of 262"},
      {"eos outside", good_bpe, [](VocabSpec* s) { s->eos = INT32_MAX; }, Code::kFormat,
       "eos token 2147483647 outside vocabulary of 258"},
      {"unknown outside", good_bpe, [](VocabSpec* s) { s->unk = -2; }, Code::kFormat,
       "unknown token -2 outside vocabulary of 258"},
      {"separator outside", good_bpe, [](VocabSpec* s) { s->sep = INT32_MIN; }, Code::kFormat,
       "separator token -2147483648 outside vocabulary of 258"},
      {"padding outside", good_bpe, [](VocabSpec* s) { s->pad = 258; }, Code::kFormat,
       "padding token 258 outside vocabulary of 258"},
      {"eot outside", good_sp, [](VocabSpec* s) { s->eot = 1000; }, Code::kFormat,
       "eot token 1000 outside vocabulary of 262"},
      {"eom outside", good_sp, [](VocabSpec* s) { s->eom = 1000; }, Code::kFormat,
       "eom token 1000 outside vocabulary of 262"},
      {"merge without a space", good_bpe, [](VocabSpec* s) { s->merges[1] = "the"; }, Code::kFormat,
       "merge 1 is not two tokens"},
      {"merge of one token", good_bpe, [](VocabSpec* s) { s->merges[1] = "th "; }, Code::kFormat,
       "merge 1 is not two tokens"},
      {"empty merge", good_bpe, [](VocabSpec* s) { s->merges[0].clear(); }, Code::kFormat,
       "merge 0 is not two tokens"},
      {"merge that begins with the space", good_bpe, [](VocabSpec* s) { s->merges[0] = " e"; },
       Code::kFormat, "merge 0 is not two tokens"},
      {"merge with unknown left", good_bpe, [](VocabSpec* s) { s->merges[1] = "xyz e"; },
       Code::kFormat, "merge 1: its left token is not in the vocabulary"},
      {"merge with unknown right", good_bpe, [](VocabSpec* s) { s->merges[1] = "th e e"; },
       Code::kFormat, "merge 1: its right token is not in the vocabulary"},
      {"merge with unknown result", good_bpe, [](VocabSpec* s) { s->merges[1] = "e th"; },
       Code::kFormat, "merge 1: its result is not in the vocabulary"},
      {"unknown kind", good_bpe, [](VocabSpec* s) { s->kind = static_cast<VocabKind>(9); },
       Code::kInvalidArgument, "vocabulary kind 9 is not known"},
  };
  return table;
}

TEST(VocabCheck, UnknownPreTokenizer) {
  VocabSpec spec = good_bpe();
  spec.pre = "no-such\nfamily";
  const auto made = create_tokenizer(std::move(spec));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  const std::string message = made.status().message();
  EXPECT_TRUE(message.starts_with("pre-tokenizer 'no-such family' is not known; ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(VocabCheck, GoodVocabulariesPass) {
  EXPECT_TRUE(create_tokenizer(good_bpe()).ok());
  EXPECT_TRUE(create_tokenizer(good_sp()).ok());
}

TEST(VocabCheck, HostileVocabulariesAreRefused) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (const Hostile& hostile : hostile_vocabularies()) {
    VocabSpec spec = hostile.base();
    hostile.harm(&spec);
    const auto made = create_tokenizer(std::move(spec));
    ASSERT_FALSE(made.ok()) << hostile.name;
    EXPECT_EQ(made.status().code(), hostile.code) << hostile.name;
    EXPECT_STREQ(made.status().message(), hostile.message) << hostile.name;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(VocabCheck, FillsInWhatABpeVocabularyMayLeaveOut) {
  VocabSpec spec = good_bpe();
  spec.scores.clear();
  spec.types.clear();
  ASSERT_TRUE(check_and_complete(&spec).ok());
  EXPECT_EQ(spec.scores.size(), 258U);
  EXPECT_EQ(spec.types, std::vector<TokenType>(258, TokenType::kNormal));
}

TEST(VocabCheck, UndefinedTypeBecomesNormal) {
  VocabSpec spec = good_sp();
  spec.types[260] = static_cast<TokenType>(0);
  ASSERT_TRUE(check_and_complete(&spec).ok());
  EXPECT_EQ(spec.types[260], TokenType::kNormal);
}

TEST(VocabCheck, ParsesByteTokens) {
  EXPECT_EQ(parse_byte_token("<0x00>"), 0);
  EXPECT_EQ(parse_byte_token("<0xFF>"), 255);
  EXPECT_EQ(parse_byte_token("<0x2A>"), 42);
  for (const char* text :
       {"", "<0x0>", "<0xGG>", "<0xff>", "0x00>>", "<0x00", "<0X00>", "<0x000>"}) {
    EXPECT_EQ(parse_byte_token(text), -1) << text;
  }
}

}  // namespace
}  // namespace gen::tokenizer
