// SPDX-License-Identifier: Apache-2.0
// Which tokens end generation, and which texts are control tokens whatever the file says.
#include "tokenizer/end_texts.h"

#include <gtest/gtest.h>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::Ids;

Ids end_tokens_of(VocabSpec spec) {
  const auto tokenizer = test::must_create(std::move(spec));
  if (!tokenizer) return {-1};
  return {tokenizer->end_tokens().begin(), tokenizer->end_tokens().end()};
}

TEST(EndTexts, IdsGivenByTheFile) {
  VocabSpec spec = test::sp_vocab({"a", "b"});
  spec.eot = 260;
  spec.eom = 259;
  EXPECT_EQ(end_tokens_of(spec), (Ids{2, 259, 260}));
  spec.eos = spec.eot = spec.eom = -1;
  EXPECT_EQ(end_tokens_of(spec), Ids{});
}

TEST(EndTexts, KnownTextsOfControlTokens) {
  VocabSpec spec = test::bpe_vocab({});
  spec.eos = add_token(&spec, "<|endoftext|>", TokenType::kControl);
  add_token(&spec, "<|im_start|>", TokenType::kControl);
  add_token(&spec, "<|im_end|>", TokenType::kControl);
  add_token(&spec, "<|eot_id|>", TokenType::kControl);
  add_token(&spec, "<EOT>", TokenType::kUserDefined);
  EXPECT_EQ(end_tokens_of(spec), (Ids{256, 258, 259}));
}

TEST(EndTexts, OfGemma4) {
  VocabSpec spec = test::bpe_vocab({});
  spec.eos = add_token(&spec, "<eos>", TokenType::kControl);
  add_token(&spec, "<|turn>", TokenType::kControl);
  add_token(&spec, "<turn|>", TokenType::kControl);
  add_token(&spec, "<|tool_response>", TokenType::kUserDefined);
  add_token(&spec, "</s>", TokenType::kControl);
  EXPECT_EQ(end_tokens_of(spec), (Ids{256, 258, 259}));
}

TEST(EndTexts, WhatTheFileNamesStays) {
  VocabSpec spec = test::bpe_vocab({});
  const int32_t id = add_token(&spec, "</s>", TokenType::kControl);
  spec.eos = -1;
  EXPECT_EQ(end_tokens_of(spec), Ids{});
  spec.eot = id;
  EXPECT_EQ(end_tokens_of(spec), Ids{id});
  spec.eot = -1;
  spec.eom = id;
  EXPECT_EQ(end_tokens_of(spec), Ids{id});
}

TEST(EndTexts, MarkersAreControlTokensWhateverTheFileSays) {
  VocabSpec spec = test::bpe_vocab({});
  add_token(&spec, "<|im_start|>", TokenType::kUserDefined);
  add_token(&spec, "<|im_end|>", TokenType::kNormal);
  const auto tokenizer = test::must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(tokenizer->is_control(256));
  EXPECT_TRUE(tokenizer->is_control(257));
  EXPECT_EQ(end_tokens_of(spec), Ids{257});
}

TEST(EndTexts, AMessageMayEndWhereATurnGoesOn) {
  VocabSpec spec = test::bpe_vocab({});
  add_token(&spec, "<|end|>", TokenType::kControl);
  EXPECT_EQ(end_tokens_of(spec), Ids{256});
  add_token(&spec, "<|return|>", TokenType::kControl);
  add_token(&spec, "<|call|>", TokenType::kControl);
  EXPECT_EQ(end_tokens_of(spec), (Ids{257, 258}));
}

TEST(EndTexts, OfSolar) {
  VocabSpec spec = test::bpe_vocab({});
  add_token(&spec, "<|end|>", TokenType::kControl);
  add_token(&spec, "<|calls|>", TokenType::kControl);
  EXPECT_EQ(end_tokens_of(spec), (Ids{256, 257}));
  add_token(&spec, "<|flush|>", TokenType::kControl);
  EXPECT_EQ(end_tokens_of(spec), (Ids{257, 258}));
}

TEST(EndTexts, OfOthers) {
  VocabSpec spec = test::bpe_vocab({});
  spec.eos = 0;
  for (const char* text : {"</s>", "_<EOT>", "[e~[", "[PAD]", "<|fim_repo|>", "<s>"}) {
    add_token(&spec, text, TokenType::kControl);
  }
  EXPECT_EQ(end_tokens_of(spec), (Ids{0, 256, 257, 258, 259, 260}));
}

}  // namespace
}  // namespace gen::tokenizer
