// SPDX-License-Identifier: Apache-2.0
// Tokenizers of all kinds from files, against the ids of others
// (tests/tokenizer/make_vocabularies.py tells of whom), and of files that hold nothing else of use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "model/gguf/tokenizer_file.h"
#include "tokenizer/tokenizer.h"

namespace gen::gguf {
namespace {

using Ids = std::vector<int32_t>;

std::string data_file(const std::string& name) {
  return GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/" + name;
}

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(data_file(name), std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string unescape(const std::string& line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text.push_back(line[i]);
      continue;
    }
    const char c = line[++i];
    text.push_back(c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
  }
  return text;
}

Ids ids_in(const std::string& line) {
  std::istringstream words(line);
  Ids ids;
  for (int32_t id = 0; words >> id;) ids.push_back(id);
  return ids;
}

std::shared_ptr<const tokenizer::Tokenizer> load(const std::string& path) {
  auto made = load_tokenizer_file(path);
  EXPECT_TRUE(made.ok()) << path << ": " << made.status().message();
  return made.ok() ? *made : nullptr;
}

Ids encode(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  return tokenizer.encode(text, 0, &ids).ok() ? ids : Ids{-1};
}

std::string decode(const tokenizer::Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  return tokenizer.decode(ids, false, &text).ok() ? text : "(failed)";
}

TEST(VocabKinds, IdsAreThoseOfOthers) {
  for (const char* kind : {"wordpiece", "wordpiece-cased", "rwkv", "t5", "plamo2", "byid",
                           "whitespace", "hybriddna"}) {
    const bool dna = std::string_view(kind) == "hybriddna";
    const auto texts = lines_of(dna ? "dna_texts.txt" : "kind_texts.txt");
    ASSERT_EQ(texts.size(), 40U);
    const auto tokenizer = load(data_file(std::string(kind) + ".gguf"));
    ASSERT_TRUE(tokenizer);
    const auto wanted = lines_of(std::string("ids_") + kind + ".txt");
    ASSERT_EQ(wanted.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(encode(*tokenizer, unescape(texts[i])), ids_in(wanted[i]))
          << kind << ": " << texts[i];
    }
  }
}

TEST(VocabKinds, ThoseOfBytesGiveTextsBack) {
  for (const char* file : {"rwkv.gguf", "plamo2.gguf", "byid.gguf"}) {
    const auto tokenizer = load(data_file(file));
    ASSERT_TRUE(tokenizer);
    for (const std::string& line : lines_of("kind_texts.txt")) {
      const std::string text = unescape(line);
      EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text) << file;
    }
  }
}

TEST(VocabKinds, WordPieceHasItsOwnRules) {
  const auto plain = load(data_file("wordpiece.gguf"));
  const auto cased = load(data_file("wordpiece-cased.gguf"));
  ASSERT_TRUE(plain && cased);
  const Ids unknown = {100};
  // accents and case vanish, and so do characters for control
  for (const char* text : {"the cafe", "The\tCAF\xC3\x89", "t\xE2\x80\x8Bhe  cafe\xCC\x81 "}) {
    EXPECT_EQ(encode(*plain, text), encode(*plain, "the cafe")) << text;
  }
  EXPECT_NE(encode(*cased, "The"), encode(*cased, "the"));
  EXPECT_EQ(encode(*plain, "\xF0\x9F\x98\x80the"), unknown);  // a word is unknown as a whole
  EXPECT_EQ(encode(*plain, ""), Ids{});
  EXPECT_EQ(encode(*plain, " \n\xC2\xA0"), Ids{});
  EXPECT_EQ(decode(*plain, encode(*plain, "The caf\xC3\xA9,\nwater")), "the cafe , water");
  EXPECT_EQ(plain->special(tokenizer::Special::kBos), 101);
  EXPECT_EQ(plain->special(tokenizer::Special::kSep), 102);
}

// Hangul is taken apart, as in BERT, and its letters kept.
TEST(VocabKinds, WordPieceKeepsLettersOfSyllables) {
  const auto plain = load(data_file("wordpiece.gguf"));
  ASSERT_TRUE(plain);
  EXPECT_EQ(encode(*plain, "\xED\x95\x9C"), encode(*plain, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"));
}

TEST(VocabKinds, LongTextsOfOneCharacter) {
  for (const char* file : {"wordpiece.gguf", "rwkv.gguf", "t5.gguf", "plamo2.gguf", "byid.gguf",
                           "whitespace.gguf", "hybriddna.gguf"}) {
    const auto tokenizer = load(data_file(file));
    ASSERT_TRUE(tokenizer);
    for (const char* unit : {"a", " ", "\xE4\xBD\xA0", "\xCC\x81", "!", "<dna>", "</dna>"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      EXPECT_NE(encode(*tokenizer, text), Ids{-1}) << file << " of " << unit;
    }
  }
}

// What a download that was cut off leaves, and a family that nobody knows.
TEST(VocabKinds, TheRestOfAFileDoesNotMatter) {
  std::ifstream in(data_file("rwkv.gguf"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string path =
      testing::TempDir() + "vocab_kinds_" + std::to_string(std::random_device{}());
  const auto write = [&](const std::string& what) {
    std::ofstream(path, std::ios::binary) << what;
  };
  const size_t family = bytes.find("llama");
  ASSERT_NE(family, std::string::npos);
  bytes.replace(family, 5, "zebra");
  bytes[8] = 100;  // that many tensors, none of which is there
  write(bytes);
  const auto tokenizer = load(path);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "\n\n").size(), 1U);
  write(bytes.substr(0, bytes.size() - 1));  // but the vocabulary must be whole
  EXPECT_FALSE(load_tokenizer_file(path).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gen::gguf
