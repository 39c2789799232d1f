// SPDX-License-Identifier: Apache-2.0
// Vocabularies out of metadata: what the keys say, what missing keys mean, what is refused.
#include "model/gguf/vocab.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "model/gguf/gguf_file.h"
#include "support/gguf_writer.h"

namespace gen::gguf {
namespace {

using test::GgufWriter;
using tokenizer::TokenType;
using tokenizer::VocabKind;
using tokenizer::VocabSpec;

Result<VocabSpec> read(const GgufWriter& writer) {
  const auto image = writer.build();
  const auto file = GgufFile::parse(image.bytes);
  if (!file.ok()) return file.status();
  return read_vocab(file.value()->metadata());
}

GgufWriter sentencepiece() {
  GgufWriter writer;
  writer.set_string("tokenizer.ggml.model", "llama")
      .set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "<0x00>"})
      .set_array<float>("tokenizer.ggml.scores", {0, 0, 0, -1.5F, 0})
      .set_array<int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 1, 6});
  return writer;
}

GgufWriter bytes() {
  GgufWriter writer;
  writer.set_string("tokenizer.ggml.model", "gpt2")
      .set_strings("tokenizer.ggml.tokens", {"a", "b", "ab"})
      .set_strings("tokenizer.ggml.merges", {"a b"});
  return writer;
}

TEST(GgufVocab, SentencePieceDefaults) {
  const auto spec = read(sentencepiece());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const VocabSpec& vocab = spec.value();
  EXPECT_EQ(vocab.kind, VocabKind::kSentencePiece);
  EXPECT_EQ(vocab.tokens.size(), 5U);
  EXPECT_EQ(vocab.tokens[3], "a");
  EXPECT_EQ(vocab.scores[3], -1.5F);
  EXPECT_EQ(vocab.types[4], TokenType::kByte);
  EXPECT_EQ(vocab.unk, 0);
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.pad, -1);
  EXPECT_TRUE(vocab.add_bos);
  EXPECT_TRUE(vocab.add_space_prefix);
  EXPECT_FALSE(vocab.special_strips_right);
  EXPECT_EQ(vocab.chat_template, "");
}

TEST(GgufVocab, KeysOverrideDefaults) {
  GgufWriter writer = sentencepiece();
  writer.set<uint32_t>("tokenizer.ggml.bos_token_id", 3)
      .set<uint32_t>("tokenizer.ggml.eos_token_id", 0xFFFFFFFF)
      .set<int32_t>("tokenizer.ggml.unknown_token_id", -1)
      .set<uint32_t>("tokenizer.ggml.seperator_token_id", 1)
      .set<uint32_t>("tokenizer.ggml.padding_token_id", 0)
      .set<uint32_t>("tokenizer.ggml.eot_token_id", 4)
      .set<uint32_t>("tokenizer.ggml.eom_token_id", 2)
      .set<bool>("tokenizer.ggml.add_bos_token", false)
      .set<bool>("tokenizer.ggml.add_space_prefix", false)
      .set<bool>("tokenizer.ggml.remove_extra_whitespaces", true)
      .set_string("tokenizer.chat_template", "{{ x }}")
      .set_string("general.name", "My Phi-3 mini");
  const auto spec = read(writer);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const VocabSpec& vocab = spec.value();
  EXPECT_EQ(vocab.bos, 3);
  EXPECT_EQ(vocab.eos, -1);
  EXPECT_EQ(vocab.unk, -1);
  EXPECT_EQ(vocab.sep, 1);
  EXPECT_EQ(vocab.pad, 0);
  EXPECT_EQ(vocab.eot, 4);
  EXPECT_EQ(vocab.eom, 2);
  EXPECT_FALSE(vocab.add_bos);
  EXPECT_FALSE(vocab.add_space_prefix);
  EXPECT_TRUE(vocab.remove_extra_whitespaces);
  EXPECT_EQ(vocab.chat_template, "{{ x }}");
  EXPECT_TRUE(vocab.special_strips_right);
}

TEST(GgufVocab, ByteBpe) {
  const auto spec = read(bytes());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const VocabSpec& vocab = spec.value();
  EXPECT_EQ(vocab.kind, VocabKind::kByteBpe);
  EXPECT_EQ(vocab.merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(vocab.pre, "default");
  EXPECT_TRUE(vocab.types.empty());
  EXPECT_TRUE(vocab.scores.empty());
  EXPECT_EQ(vocab.bos, -1);
  EXPECT_EQ(vocab.eos, -1);
  EXPECT_FALSE(vocab.add_bos);
  EXPECT_FALSE(vocab.add_space_prefix);
  const auto llama3 = read(bytes().set_string("tokenizer.ggml.pre", "llama-bpe"));
  ASSERT_TRUE(llama3.ok());
  EXPECT_EQ(llama3.value().pre, "llama-bpe");
  EXPECT_TRUE(llama3.value().add_bos);
}

TEST(GgufVocab, TextBpe) {
  const auto writer = [] {
    GgufWriter made;
    made.set_string("tokenizer.ggml.model", "gemma4")
        .set_strings("tokenizer.ggml.tokens", {"a", "b", "ab"})
        .set_strings("tokenizer.ggml.merges", {"a b"});
    return made;
  };
  const auto spec = read(writer().set("tokenizer.ggml.add_bos_token", false));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec.value().kind, VocabKind::kTextBpe);
  EXPECT_EQ(spec.value().merges, std::vector<std::string>{"a b"});
  EXPECT_TRUE(spec.value().add_bos);  // whatever the file says
  EXPECT_FALSE(spec.value().add_space_prefix);
  EXPECT_TRUE(spec.value().types.empty());
}

std::vector<std::string> logged_by(const GgufWriter& writer) {
  std::vector<std::string> lines;
  set_log_sink(
      [](void* user, int32_t level, const char* message) {
        EXPECT_EQ(level, static_cast<int32_t>(LogLevel::kWarning));
        static_cast<std::vector<std::string>*>(user)->emplace_back(message);
      },
      &lines);
  set_log_level(LogLevel::kWarning);
  const auto spec = read(writer);
  set_log_level(LogLevel::kOff);
  set_log_sink(nullptr, nullptr);
  EXPECT_TRUE(spec.ok());
  return lines;
}

using Lines = std::vector<std::string>;

// A file of older converters splits words as no tokenizer of today does.
TEST(GgufVocab, AMissingPreTokenizerIsLogged) {
  EXPECT_EQ(
      logged_by(bytes()),
      Lines{"metadata 'tokenizer.ggml.pre' is missing: words are split as 'default', which may "
            "not be how the model's are"});
  EXPECT_EQ(logged_by(bytes().set_string("tokenizer.ggml.pre", "default")), Lines{});
}

TEST(GgufVocab, AMissingBosIsTheFamilys) {
  const auto named = [](const char* pre) {
    return GgufWriter()
        .set_string("tokenizer.ggml.model", "gpt2")
        .set_strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|begin_of_text|>"})
        .set_strings("tokenizer.ggml.merges", {"a b"})
        .set_string("tokenizer.ggml.pre", pre);
  };
  EXPECT_EQ(logged_by(sentencepiece()),
            Lines{"metadata 'tokenizer.ggml.bos_token_id' is missing: texts begin with token 1"});
  EXPECT_EQ(logged_by(named("llama-bpe")),
            Lines{"metadata 'tokenizer.ggml.bos_token_id' is missing: texts begin with token 3"});
  EXPECT_EQ(read(named("llama-bpe")).value().bos, 3);
  EXPECT_EQ(logged_by(named("qwen2")), Lines{});  // does not begin with one
  EXPECT_EQ(read(named("qwen2")).value().bos, -1);
  EXPECT_EQ(logged_by(bytes().set_string("tokenizer.ggml.pre", "tekken")),
            Lines{"metadata 'tokenizer.ggml.bos_token_id' is missing: texts begin without such a "
                  "token"});
  EXPECT_EQ(logged_by(named("llama-bpe").set<uint32_t>("tokenizer.ggml.bos_token_id", 0)), Lines{});
}

TEST(GgufVocab, MergesMayBeMissing) {
  const auto writer = GgufWriter()
                          .set_string("tokenizer.ggml.model", "gpt2")
                          .set_string("tokenizer.ggml.pre", "kimi-k2")
                          .set_strings("tokenizer.ggml.tokens", {"a", "", "ab"});
  EXPECT_EQ(logged_by(writer), Lines{"metadata 'tokenizer.ggml.merges' is missing: tokens are "
                                     "merged in the order of their ids"});
  EXPECT_TRUE(read(writer).value().merges.empty());
  EXPECT_EQ(read(writer).value().tokens[1], "[EMPTY_1]");
}

TEST(GgufVocab, APreTokenizerMayBeNamed) {
  const auto named = [](const GgufWriter& writer, const char* pre) {
    const auto image = writer.build();
    return read_vocab(GgufFile::parse(image.bytes).value()->metadata(), pre);
  };
  const GgufWriter odd = bytes().set_string("tokenizer.ggml.pre", "nobody's");
  EXPECT_EQ(named(odd, "qwen2").value().pre, "qwen2");
  EXPECT_EQ(named(odd, "llama3").value().add_bos, true);
  EXPECT_EQ(named(odd, "gemma4").value().kind, VocabKind::kTextBpe);
  EXPECT_EQ(named(odd, "").value().pre, "nobody's");
  const auto refused = named(sentencepiece(), "qwen2");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_STREQ(refused.status().message(),
               "pre-tokenizer 'qwen2' for a vocabulary of kind 'llama', which has none");
}

TEST(GgufVocab, OtherKinds) {
  const auto with = [](const char* model) {
    return GgufWriter()
        .set_string("tokenizer.ggml.model", model)
        .set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"})
        .set_array<float>("tokenizer.ggml.scores", {0, 0, -1})
        .set_array<int32_t>("tokenizer.ggml.token_type", {2, 3, 3})
        .set<uint32_t>("tokenizer.ggml.bos_token_id", 1);
  };
  const VocabSpec pieces =
      read(with("bert").set<bool>("tokenizer.ggml.normalizer.lowercase", false)).value();
  EXPECT_EQ(pieces.kind, VocabKind::kWordPiece);
  EXPECT_EQ(pieces.unk, -1);  // 100, which is not there
  EXPECT_EQ(pieces.pad, 0);
  EXPECT_TRUE(pieces.add_bos);
  EXPECT_FALSE(pieces.lowercase);
  EXPECT_FALSE(pieces.strip_accents);  // as lowercase, if nothing else is said
  const VocabSpec unigram =
      read(with("t5").set_array<uint8_t>("tokenizer.ggml.precompiled_charsmap", {1, 2})).value();
  EXPECT_EQ(unigram.kind, VocabKind::kUnigram);
  EXPECT_EQ(unigram.charsmap, "\x01\x02");
  EXPECT_EQ(unigram.eos, 1);
  EXPECT_EQ(unigram.unk, 2);
  EXPECT_FALSE(unigram.add_bos);
  EXPECT_EQ(read(with("rwkv")).value().kind, VocabKind::kRwkv);
  const VocabSpec plamo2 = read(with("plamo2")).value();
  EXPECT_EQ(plamo2.kind, VocabKind::kPlamo2);
  EXPECT_EQ(plamo2.eos, 2);
  EXPECT_EQ(plamo2.unk, 0);
  EXPECT_FALSE(plamo2.add_bos);
  EXPECT_EQ(read(bytes().set_string("tokenizer.ggml.pre", "sarvam-moe")).value().kind,
            VocabKind::kTextBpe);
  const VocabSpec words = read(with("whitespace").set_strings("tokenizer.ggml.merges", {})).value();
  EXPECT_EQ(words.kind, VocabKind::kTextBpe);
  EXPECT_EQ(words.pre, "whitespace");
  EXPECT_FALSE(words.add_bos);
  EXPECT_FALSE(words.lowercase);
  const VocabSpec dna = read(with("hybriddna").set_string("tokenizer.ggml.pre", "qwen2")).value();
  EXPECT_EQ(dna.kind, VocabKind::kHybridDna);
  EXPECT_EQ(dna.pre, "qwen2");
}

TEST(GgufVocab, ScoresMayBeWholeNumbers) {
  const auto with = [](const std::vector<int32_t>& scores) {
    return read(GgufWriter()
                    .set_string("tokenizer.ggml.model", "llama")
                    .set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b"})
                    .set_array<int32_t>("tokenizer.ggml.scores", scores)
                    .set_array<int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 1, 1}));
  };
  const auto spec = with({0, -1, 7, 16777217, -9});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec.value().scores, (std::vector<float>{0, -1, 7, 16777216, -9}));
  const auto few = with({0});
  ASSERT_FALSE(few.ok());
  EXPECT_STREQ(few.status().message(), "metadata 'tokenizer.ggml.scores': 1 elements for 5 tokens");
}

struct Bad {
  const char* name;
  std::function<GgufWriter()> writer;
  Code code;
  const char* message;
};

TEST(GgufVocab, BadOnesAreNamed) {
  const std::vector<Bad> rows = {
      {"no model", [] { return GgufWriter(); }, Code::kFormat,
       "metadata 'tokenizer.ggml.model' is missing (string wanted)"},
      {"other model", [] { return GgufWriter().set_string("tokenizer.ggml.model", "zebra"); },
       Code::kUnsupported,
       "metadata 'tokenizer.ggml.model': 'zebra' is not supported (llama, gpt2, gemma4, bert, "
       "t5, "
       "rwkv, plamo2, hybriddna, whitespace are)"},
      {"none", [] { return GgufWriter().set_string("tokenizer.ggml.model", "none"); },
       Code::kFormat, "the file has no tokenizer: metadata 'tokenizer.ggml.model' is 'none'"},
      {"none in other words",
       [] { return GgufWriter().set_string("tokenizer.ggml.model", "no_vocab"); }, Code::kFormat,
       "the file has no tokenizer: metadata 'tokenizer.ggml.model' is 'no_vocab'"},
      {"no tokens", [] { return GgufWriter().set_string("tokenizer.ggml.model", "llama"); },
       Code::kFormat, "metadata 'tokenizer.ggml.tokens' is missing (array of string wanted)"},
      {"no token at all",
       [] {
         return GgufWriter()
             .set_string("tokenizer.ggml.model", "llama")
             .set_strings("tokenizer.ggml.tokens", {});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.tokens': 0 tokens outside [1, 16777216]"},
      {"no scores",
       [] {
         return GgufWriter()
             .set_string("tokenizer.ggml.model", "llama")
             .set_strings("tokenizer.ggml.tokens", {"a"});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.scores' is missing (array of finite f32 wanted)"},
      {"few scores", [] { return bytes().set_array<float>("tokenizer.ggml.scores", {1}); },
       Code::kFormat, "metadata 'tokenizer.ggml.scores': 1 elements for 3 tokens"},
      {"many types",
       [] {
         return bytes().set_array<int32_t>("tokenizer.ggml.token_type", {1, 1, 1, 1});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.token_type': 4 elements for 3 tokens"},
      {"types of floats",
       [] {
         return bytes().set_array<float>("tokenizer.ggml.token_type", {1, 1, 1});
       },
       Code::kFormat,
       "metadata 'tokenizer.ggml.token_type': array of i32 wanted, array of f32 found"},
      {"no merges",
       [] {
         return GgufWriter()
             .set_string("tokenizer.ggml.model", "gemma4")
             .set_strings("tokenizer.ggml.tokens", {"a"});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.merges' is missing (array of string wanted)"},
      {"charsmap of numbers",
       [] {
         return GgufWriter()
             .set_string("tokenizer.ggml.model", "t5")
             .set_strings("tokenizer.ggml.tokens", {"a"})
             .set_array<float>("tokenizer.ggml.scores", {0})
             .set_array<int32_t>("tokenizer.ggml.token_type", {1})
             .set_array<int32_t>("tokenizer.ggml.precompiled_charsmap", {1});
       },
       Code::kFormat,
       "metadata 'tokenizer.ggml.precompiled_charsmap': array of u8 wanted, array of i32 found"},
      {"bos outside", [] { return bytes().set<uint32_t>("tokenizer.ggml.bos_token_id", 3); },
       Code::kFormat, "metadata 'tokenizer.ggml.bos_token_id': token 3 outside vocabulary of 3"},
      {"negative eos", [] { return bytes().set<int32_t>("tokenizer.ggml.eos_token_id", -2); },
       Code::kFormat, "metadata 'tokenizer.ggml.eos_token_id': -2 does not fit u32"},
      {"flag as number", [] { return bytes().set<uint32_t>("tokenizer.ggml.add_bos_token", 1); },
       Code::kFormat, "metadata 'tokenizer.ggml.add_bos_token': bool wanted, u32 found"},
      {"template of bytes", [] { return bytes().set_string("tokenizer.chat_template", "\xFF"); },
       Code::kFormat, "metadata 'tokenizer.chat_template': string is not UTF-8 without NUL"},
  };
  for (const Bad& row : rows) {
    SCOPED_TRACE(row.name);
    const auto spec = read(row.writer());
    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(spec.status().code(), row.code);
    EXPECT_STREQ(spec.status().message(), row.message);
  }
}

}  // namespace
}  // namespace gen::gguf
