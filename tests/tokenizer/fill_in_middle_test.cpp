// SPDX-License-Identifier: Apache-2.0
// Prompts around a hole: which tokens mark it, and that nothing else becomes one.
#include "tokenizer/fill_in_middle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

TEST(FillInMiddle, MarksOfEachFamily) {
  const char* const families[][3] = {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                                     {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                                     {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
                                     {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
                                     {"▁<PRE>", "▁<SUF>", "▁<MID>"},
                                     {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"}};
  for (const auto& family : families) {
    VocabSpec spec = test::bpe_vocab({"h i"});
    const int32_t middle = test::add_token(&spec, family[2], TokenType::kControl);
    const int32_t suffix = test::add_token(&spec, family[1], TokenType::kControl);
    EXPECT_EQ(find_fill_marks(spec).prefix, -1);
    const int32_t prefix = test::add_token(&spec, family[0], TokenType::kControl);
    const FillMarks marks = find_fill_marks(spec);
    EXPECT_EQ(Ids({marks.prefix, marks.suffix, marks.middle}), Ids({prefix, suffix, middle}));
    const auto tokenizer = test::must_create(spec);
    Ids ids;
    ASSERT_TRUE(encode_fill_in_middle(*tokenizer, "hi", family[1], 0, &ids).ok());
    // prefix mark, "hi", suffix mark, the text of a mark as text, middle mark
    Ids expected = {prefix};
    ASSERT_TRUE(tokenizer->encode("hi", 0, &expected).ok());
    expected.push_back(suffix);
    ASSERT_TRUE(tokenizer->encode(family[1], 0, &expected).ok());
    expected.push_back(middle);
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), suffix), 1);
  }
}

TEST(FillInMiddle, WhatTheFileNamesCounts) {
  VocabSpec spec = test::bpe_vocab({"h i"});
  test::add_token(&spec, "<fim_prefix>", TokenType::kControl);
  test::add_token(&spec, "<fim_suffix>", TokenType::kControl);
  test::add_token(&spec, "<fim_middle>", TokenType::kControl);
  spec.fim_prefix = test::add_token(&spec, "<before>", TokenType::kControl);
  spec.fim_suffix = test::add_token(&spec, "<after>", TokenType::kControl);
  spec.fim_middle = test::add_token(&spec, "<here>", TokenType::kControl);
  spec.bos = test::add_token(&spec, "<s>", TokenType::kControl);
  spec.add_bos = true;
  const auto tokenizer = test::must_create(spec);
  Ids ids;
  ASSERT_TRUE(encode_fill_in_middle(*tokenizer, "", "", kAddBos, &ids).ok());
  EXPECT_EQ(ids, Ids({spec.bos, spec.fim_prefix, spec.fim_suffix, spec.fim_middle}));
}

TEST(FillInMiddle, Refusals) {
  const auto none = test::must_create(test::bpe_vocab({"h i"}));
  Ids ids = {7};
  EXPECT_EQ(encode_fill_in_middle(*none, "a", "b", 0, &ids).code(), Code::kUnsupported);
  VocabSpec spec = test::bpe_vocab({"h i"});
  // The text of a mark alone is no mark.
  test::add_token(&spec, "<fim_prefix>", TokenType::kNormal);
  test::add_token(&spec, "<fim_suffix>", TokenType::kControl);
  test::add_token(&spec, "<fim_middle>", TokenType::kControl);
  EXPECT_EQ(encode_fill_in_middle(*test::must_create(spec), "a", "b", 0, &ids).code(),
            Code::kUnsupported);
  for (const char* const text : {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"}) {
    test::add_token(&spec, text, TokenType::kControl);
  }
  const auto some = test::must_create(spec);
  EXPECT_EQ(encode_fill_in_middle(*some, "a", "\xff", 0, &ids).code(), Code::kTokenizer);
  EXPECT_EQ(ids, Ids({7}));
}

}  // namespace
}  // namespace gen::tokenizer
