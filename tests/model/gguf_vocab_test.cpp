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

struct Bad {
  const char* name;
  std::function<GgufWriter()> writer;
  Code code;
  const char* message;
};

// A file of older converters splits words as no tokenizer of today does.
TEST(GgufVocab, AMissingPreTokenizerIsLogged) {
  std::vector<std::string> lines;
  set_log_sink(
      [](void* user, int32_t level, const char* message) {
        EXPECT_EQ(level, static_cast<int32_t>(LogLevel::kWarning));
        static_cast<std::vector<std::string>*>(user)->emplace_back(message);
      },
      &lines);
  set_log_level(LogLevel::kWarning);
  const bool all = read(bytes()).ok() && read(sentencepiece()).ok() &&
                   read(bytes().set_string("tokenizer.ggml.pre", "default")).ok();
  set_log_level(LogLevel::kOff);
  set_log_sink(nullptr, nullptr);
  EXPECT_TRUE(all);
  ASSERT_EQ(lines.size(), 1U);  // of the first alone
  EXPECT_NE(lines[0].find("tokenizer.ggml.pre"), std::string::npos) << lines[0];
}

TEST(GgufVocab, BadOnesAreNamed) {
  const std::vector<Bad> rows = {
      {"no model", [] { return GgufWriter(); }, Code::kFormat,
       "metadata 'tokenizer.ggml.model' is missing (string wanted)"},
      {"other model", [] { return GgufWriter().set_string("tokenizer.ggml.model", "bert"); },
       Code::kUnsupported,
       "metadata 'tokenizer.ggml.model': 'bert' is not supported (llama, gpt2 and gemma4 are)"},
      {"no tokens", [] { return GgufWriter().set_string("tokenizer.ggml.model", "llama"); },
       Code::kFormat, "metadata 'tokenizer.ggml.tokens' is missing (array of string wanted)"},
      {"no token at all",
       [] {
         return GgufWriter()
             .set_string("tokenizer.ggml.model", "llama")
             .set_strings("tokenizer.ggml.tokens", {});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.tokens': 0 tokens outside [1, 2147483647]"},
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
             .set_string("tokenizer.ggml.model", "gpt2")
             .set_strings("tokenizer.ggml.tokens", {"a"});
       },
       Code::kFormat, "metadata 'tokenizer.ggml.merges' is missing (array of string wanted)"},
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
