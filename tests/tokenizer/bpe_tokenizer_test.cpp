// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE as a whole: ids worked out by hand from the merges, round trips of random texts,
// and the same ids with and without the word cache.
#include "tokenizer/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::bpe_vocab;
using test::decode;
using test::encode;
using test::Ids;
using test::must_create;

constexpr const char* kSpace = "\xC4\xA0";  // how the alphabet writes a space

// 256 th, 257 the, 258 " t", 259 " the", 260 in, 261 " a"
VocabSpec english(std::string pre = "gpt-2") {
  const std::string sp = kSpace;
  return bpe_vocab({"t h", "th e", sp + " t", sp + " the", "i n", sp + " a"}, std::move(pre));
}

TEST(BpeTokenizer, IdsByHand) {
  const auto tokenizer = must_create(english());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
  EXPECT_EQ(encode(*tokenizer, "the"), Ids{257});
  // " the": "t h" goes first, so " t" never comes to be
  EXPECT_EQ(encode(*tokenizer, " the"), Ids{259});
  EXPECT_EQ(encode(*tokenizer, " to"), (Ids{258, 'o'}));
  EXPECT_EQ(encode(*tokenizer, "thin the"), (Ids{256, 260, 259}));
  // two words: the space stays with the second, and nothing merges over the border
  EXPECT_EQ(encode(*tokenizer, "i n"), (Ids{'i', ' ', 'n'}));
  EXPECT_EQ(encode(*tokenizer, "\xC3\xA9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(encode(*tokenizer, std::string("\0\n", 2)), (Ids{0, '\n'}));
}

TEST(BpeTokenizer, FamiliesDiffer) {
  const auto gpt2 = must_create(bpe_vocab({"1 2", "12 3", "123 4"}, "gpt-2"));
  const auto llama = must_create(bpe_vocab({"1 2", "12 3", "123 4"}, "llama-bpe"));
  const auto qwen = must_create(bpe_vocab({"1 2", "12 3", "123 4"}, "qwen2"));
  ASSERT_TRUE(gpt2 && llama && qwen);
  EXPECT_EQ(encode(*gpt2, "1234"), Ids{258});
  EXPECT_EQ(encode(*llama, "1234"), (Ids{257, '4'}));
  EXPECT_EQ(encode(*qwen, "1234"), (Ids{'1', '2', '3', '4'}));
}

// Families whose tokenizers bring texts into form C first, and others, which must not.
TEST(BpeTokenizer, SomeFamiliesNormalise) {
  const std::string apart = "e\u0301 \u1112\u1161\u11ab";
  const Ids bytes{0xC3, 0xA9, ' ', 0xED, 0x95, 0x9C};
  for (const char* pre : {"qwen2", "qwen35", "stablelm2", "command-r", "olmo", "mpt"}) {
    const auto tokenizer = must_create(bpe_vocab({}, pre));
    EXPECT_EQ(encode(*tokenizer, apart), bytes) << pre;
    EXPECT_EQ(encode(*tokenizer, "\u00e9 \ud55c"), bytes) << pre;
    // What stands on both sides of a border of segments is one text.
    Ids ids;
    const TextSegment segments[] = {{"e", false}, {"\u0301", true}};
    ASSERT_TRUE(tokenizer->encode_segments(segments, 0, -1, &ids).ok());
    EXPECT_EQ(ids, (Ids{0xC3, 0xA9})) << pre;
  }
  for (const char* pre : {"gpt-2", "llama-bpe", "tekken", "gpt-4o", "deepseek-v3", "default"}) {
    const auto tokenizer = must_create(bpe_vocab({}, pre));
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, apart)), apart) << pre;
  }
}

// Llama 3 has tokens that its own merges do not reach; a whole word that is one is taken as it is.
TEST(BpeTokenizer, WholeWordsFirst) {
  for (const bool whole : {false, true}) {
    VocabSpec spec = bpe_vocab({"a b"}, whole ? "llama-bpe" : "qwen2");
    add_token(&spec, "abc", TokenType::kNormal);
    const auto tokenizer = must_create(std::move(spec));
    ASSERT_TRUE(tokenizer);
    EXPECT_EQ(encode(*tokenizer, "abc"), whole ? Ids{257} : (Ids{256, 'c'}));
    EXPECT_EQ(encode(*tokenizer, "abcd"), (Ids{256, 'c', 'd'}));
  }
}

TEST(BpeTokenizer, InvalidUtf8) {
  const auto tokenizer = must_create(english());
  ASSERT_TRUE(tokenizer);
  Ids ids = {7};
  const Status status = tokenizer->encode("ab\xC3(", 0, &ids);
  EXPECT_EQ(status.code(), Code::kTokenizer);
  EXPECT_STREQ(status.message(), "text is not UTF-8 at byte 2 (0xc3)");
  EXPECT_EQ(ids, Ids{7});
}

TEST(BpeTokenizer, ByteWithoutAToken) {
  VocabSpec spec = english();
  spec.tokens['z'] = "[gone]";
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  Ids ids = {7};
  const Status status = tokenizer->encode("the z", 0, &ids);
  EXPECT_EQ(status.code(), Code::kTokenizer);
  EXPECT_STREQ(status.message(), "vocabulary has no token for byte 0x7a");
  EXPECT_EQ(ids, Ids{7});
  spec.unk = 'z';
  EXPECT_EQ(encode(*must_create(spec), "the z"), (Ids{257, ' ', 'z'}));
  // a byte token in SentencePiece's manner serves as well
  spec.unk = -1;
  add_token(&spec, "<0x7A>", TokenType::kByte);
  const auto with_byte = must_create(spec);
  EXPECT_EQ(encode(*with_byte, "z"), Ids{262});
  EXPECT_EQ(decode(*with_byte, {262}), "z");
}

TEST(BpeTokenizer, SpecialTokens) {
  VocabSpec spec = english();
  spec.bos = add_token(&spec, "<|begin|>", TokenType::kControl);      // 262
  add_token(&spec, "<tool>", TokenType::kUserDefined);                // 263
  spec.eos = add_token(&spec, "<|endoftext|>", TokenType::kControl);  // 264
  const auto tokenizer = must_create(std::move(spec));
  ASSERT_TRUE(tokenizer);
  const Ids plain = {'<', '|', 'b', 'e', 'g', 260, '|', '>'};
  Ids begin = encode(*tokenizer, "<|begin|>");
  EXPECT_EQ(begin, plain);
  EXPECT_EQ(encode(*tokenizer, "<|begin|>the", kParseSpecial), (Ids{262, 257}));
  EXPECT_EQ(encode(*tokenizer, "the<tool>the"), (Ids{257, 263, 257}));
  EXPECT_EQ(encode(*tokenizer, "the", kAddBos), (Ids{262, 257}));
  EXPECT_EQ(encode(*tokenizer, "<|begin|>the", kAddBos | kParseSpecial), (Ids{262, 257}));
  EXPECT_EQ(encode(*tokenizer, "", kAddBos), Ids{262});
  EXPECT_EQ(decode(*tokenizer, {262, 257, 263, 264}), "the<tool>");
  EXPECT_EQ(decode(*tokenizer, {262, 257, 263, 264}, true), "<|begin|>the<tool><|endoftext|>");
}

TEST(BpeTokenizer, RoundTrips) {
  const auto tokenizer = must_create(english());
  ASSERT_TRUE(tokenizer);
  std::mt19937 random(17);
  for (int round = 0; round < 500; ++round) {
    const std::string text = test::random_text(&random, random() % 60);
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text);
  }
}

// A text above the cache's threshold gives the ids of its parts, cut where words begin.
TEST(BpeTokenizer, LongTextsGiveTheSameIds) {
  const auto tokenizer = must_create(english());
  ASSERT_TRUE(tokenizer);
  std::mt19937 random(23);
  const char* const words[] = {
      " the", " thin", " a", " inn", " other", " the,", " \xC3\xA9t\xC3\xA9"};
  std::string text;
  Ids expected;
  while (text.size() < 20000) {
    const char* word = words[random() % std::size(words)];
    const Ids ids = encode(*tokenizer, word);
    text += word;
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(encode(*tokenizer, text), expected);
}

TEST(BpeTokenizer, OneForManyThreads) {
  const auto tokenizer = must_create(english("llama-bpe"));
  ASSERT_TRUE(tokenizer);
  std::mt19937 random(29);
  const std::string text = test::random_text(&random, 5000);
  const Ids expected = encode(*tokenizer, text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) equal[t] += encode(*tokenizer, text) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>{5, 5, 5, 5}));
}

}  // namespace
}  // namespace gen::tokenizer
