// SPDX-License-Identifier: Apache-2.0
// Texts encoded one after another decode to all of them together, whatever the vocabulary and
// wherever a text is cut.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "tokenizer/stream_decoder.h"
#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::decode;
using test::Ids;
using test::must_create;
using test::sp_vocab;

Ids encode_after(const Tokenizer& tokenizer, std::string_view text, int32_t previous,
                 uint32_t flags = 0) {
  Ids ids;
  return tokenizer.encode(text, flags, &ids, previous).ok() ? ids : Ids{-1};
}

// 259 _  260 a  261 _a, then 262 <y> user-defined and 263 <x> control
VocabSpec small_vocab() {
  VocabSpec spec = sp_vocab({"_", "a", "_a"});
  add_token(&spec, "<y>", TokenType::kUserDefined);
  add_token(&spec, "<x>", TokenType::kControl);
  return spec;
}

TEST(Continuation, SpaceOnlyWhereDecodingTakesOneAway) {
  const auto tokenizer = must_create(small_vocab());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode_after(*tokenizer, "a", kTextStart), Ids{261});
  EXPECT_EQ(encode_after(*tokenizer, "a", kInText), Ids{260});
  EXPECT_EQ(encode_after(*tokenizer, "a", 260), Ids{260});
  EXPECT_EQ(encode_after(*tokenizer, " a", 260), Ids{261});
  EXPECT_EQ(encode_after(*tokenizer, "a", 3 + '\n'), Ids{260});
  EXPECT_EQ(encode_after(*tokenizer, "a", 0), Ids{260});  // unknown characters are text
  for (const int32_t special : {1, 262, 263}) {
    EXPECT_EQ(encode_after(*tokenizer, "a", special), Ids{261});
    EXPECT_EQ(encode_after(*tokenizer, " a", special), (Ids{259, 261}));
  }
  // behind a special token of the text itself and behind BOS it starts anew
  EXPECT_EQ(encode_after(*tokenizer, "a<y>a", 260), (Ids{260, 262, 261}));
  EXPECT_EQ(encode_after(*tokenizer, "<x>a", 260, kParseSpecial), (Ids{263, 261}));
  EXPECT_EQ(encode_after(*tokenizer, "a", 260, kAddBos), (Ids{1, 261}));
  EXPECT_EQ(encode_after(*tokenizer, "", 260), Ids{});
}

TEST(Continuation, ExtraWhiteSpaceStaysAtTheEnds) {
  VocabSpec spec = small_vocab();
  spec.remove_extra_whitespaces = true;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode_after(*tokenizer, "  a  a ", kTextStart), (Ids{261, 261}));
  EXPECT_EQ(encode_after(*tokenizer, " a  a ", kInText), (Ids{261, 261, 259}));
  EXPECT_EQ(encode_after(*tokenizer, "  ", kInText), Ids{259});
  EXPECT_EQ(encode_after(*tokenizer, "a", kInText), Ids{260});
}

// Phi-3: the line break after <x> belongs to it, in the next text, too.
TEST(Continuation, SpecialTokensThatEatWhiteSpace) {
  VocabSpec spec = small_vocab();
  spec.special_strips_right = true;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode_after(*tokenizer, "\n a", 263), Ids{261});
  EXPECT_EQ(encode_after(*tokenizer, "\n a", 260), (Ids{3 + '\n', 261}));
  EXPECT_EQ(encode_after(*tokenizer, "\n a", kInText), (Ids{3 + '\n', 261}));
}

std::vector<std::shared_ptr<const Tokenizer>> all_kinds() {
  std::vector<std::shared_ptr<const Tokenizer>> made;
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "tekken", "default"}) {
    VocabSpec spec = test::bpe_vocab({"a b", "t h", "th e", "\xC4\xA0 a"}, pre);
    add_token(&spec, "<y>", TokenType::kUserDefined);
    made.push_back(must_create(spec));
  }
  const std::vector<std::string> pieces = {"_",  "a",  "_a", "__", "e",   "th",           "the",
                                           "_b", "a_", "'s", "1",  "_th", "\xE6\x97\xA5", "\n"};
  for (const bool prefix : {true, false}) {
    for (const bool escape : {true, false}) {
      VocabSpec spec = sp_vocab(pieces);
      add_token(&spec, " ", TokenType::kNormal, -20);
      add_token(&spec, " a", TokenType::kNormal, -2);
      add_token(&spec, "<s>A", TokenType::kUserDefined);
      add_token(&spec, "12", TokenType::kUserDefined);
      spec.add_space_prefix = prefix;
      spec.escape_whitespaces = escape;
      made.push_back(must_create(spec));
    }
  }
  std::ifstream file(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/bpe.model", std::ios::binary);
  const std::string model{std::istreambuf_iterator<char>(file), {}};
  made.push_back(std::move(load_sentencepiece_model(std::as_bytes(std::span(model)))).value());
  return made;
}

// Also streamed, each text on its own after what came before.
TEST(Continuation, CutsDoNotShow) {
  std::mt19937 random(73);
  for (const auto& tokenizer : all_kinds()) {
    ASSERT_TRUE(tokenizer);
    for (int round = 0; round < 300; ++round) {
      Ids ids;
      if (tokenizer->special(Special::kBos) >= 0 && random() % 2 == 0) {
        ids.push_back(tokenizer->special(Special::kBos));
      }
      std::string text;
      std::string streamed;
      for (size_t cuts = random() % 6; cuts > 0; --cuts) {
        const std::string part = test::random_text(&random, random() % 9);
        StreamDecoder decoder(*tokenizer);
        ASSERT_TRUE(decoder.resume(ids).ok());
        const size_t before = ids.size();
        const int32_t previous = ids.empty() ? kTextStart : ids.back();
        ASSERT_TRUE(tokenizer->encode(part, 0, &ids, previous).ok());
        text += part;
        for (size_t i = before; i < ids.size(); ++i) {
          ASSERT_TRUE(decoder.feed(ids[i], &streamed).ok());
        }
        decoder.flush(&streamed);
        ASSERT_EQ(streamed, text);
      }
      ASSERT_EQ(decode(*tokenizer, ids), text);
    }
  }
}

}  // namespace
}  // namespace gen::tokenizer
