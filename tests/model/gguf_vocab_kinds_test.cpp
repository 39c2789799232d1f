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

#include "model/gguf/gguf_file.h"
#include "model/gguf/split_name.h"
#include "model/gguf/tokenizer_file.h"
#include "support/gguf_writer.h"
#include "tokenizer/tokenizer.h"

namespace gen::gguf {
namespace {

using test::GgufImage;
using test::GgufWriter;

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

// Of a split model the first part has the metadata.
TEST(VocabKinds, AnyPartOfASplitModel) {
  const std::string prefix =
      testing::TempDir() + "vocab_split_" + std::to_string(std::random_device{}());
  const std::string first = split_path(prefix, 1, 2);
  const std::string second = split_path(prefix, 2, 2);
  const GgufImage later =
      GgufWriter().set<uint16_t>("split.no", 1).set<uint16_t>("split.count", 2).build();
  std::ofstream(second, std::ios::binary)
      .write(reinterpret_cast<const char*>(later.bytes.data()),
             static_cast<std::streamsize>(later.bytes.size()));
  const auto alone = load_tokenizer_file(second);
  ASSERT_FALSE(alone.ok());
  EXPECT_STREQ(alone.status().message(),
               ("metadata 'split.no': 1 (from 0), but part 1, which has the tokenizer, is missing: "
                "no file '" +
                first + "'")
                   .c_str());
  std::filesystem::copy_file(data_file("rwkv.gguf"), first);
  const auto tokenizer = load(second);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "\n\n"), encode(*load(first), "\n\n"));
  // What is wrong with the first part is said under its name.
  const std::string name = "'" + std::filesystem::path(first).filename().string() + "': ";
  std::ofstream(first, std::ios::binary) << "no model";
  EXPECT_EQ(load_tokenizer_file(second).status().message(),
            name + "magic: not a GGUF file (it must begin with the bytes GGUF)");
  std::filesystem::copy_file(second, first, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(load_tokenizer_file(second).status().message(),
            name + "metadata 'split.no': 1 (from 0), but the file name says part 1");
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

TEST(VocabKinds, WhatIsNoModelIsNamed) {
  const std::string path =
      testing::TempDir() + "vocab_other_" + std::to_string(std::random_device{}());
  const auto refusals = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const auto made = load_tokenizer_file(path);
    const auto file = GgufFile::open(path);
    EXPECT_EQ(made.status().code(), Code::kFormat);
    EXPECT_EQ(file.status().code(), Code::kFormat);
    return std::vector<std::string>{made.status().message(), file.status().message()};
  };
  const auto both = [](const std::string& what) { return std::vector<std::string>(2, what); };
  EXPECT_EQ(refusals(""), both("magic: not a GGUF file but an empty one"));
  EXPECT_EQ(refusals("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
            both("magic: not a GGUF file but a pointer of git-lfs, which stands for the file; git "
                 "lfs pull gets it"));
  for (const char* page : {"<!DOCTYPE html>\n<title>404</title>", "<!doctype html>", "<HTML>"}) {
    EXPECT_EQ(refusals(page), both("magic: not a GGUF file but a web page; was the address that "
                                   "of the file itself?"));
  }
  EXPECT_EQ(refusals("hello"),
            (std::vector<std::string>{"magic: neither a GGUF file nor a SentencePiece model",
                                      "magic: not a GGUF file (it must begin with the bytes "
                                      "GGUF)"}));
  EXPECT_STREQ(load_tokenizer_file(path, "qwen2").status().message(),
               "magic: neither a GGUF file nor a SentencePiece model");
  EXPECT_EQ(refusals("\x0A\x05")[0], "sentencepiece model: broken field at byte 0 of 2");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gen::gguf
