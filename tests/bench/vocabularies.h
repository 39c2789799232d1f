// SPDX-License-Identifier: Apache-2.0
// Shared by the benches of grammars: vocabularies, texts as tokens, time.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/mask/vocabulary.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab.h"

namespace gen::grammar::bench {

// CPU time of this thread, which other load on the machine does not affect.
inline double now_micros() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

inline double micros(double begin) { return now_micros() - begin; }

inline std::string random_word(std::mt19937& random) {
  static const char* const kParts[] = {"a",  "e",  "i",  "o",  "u",  "th",  "st",  "er",
                                       "in", "on", "re", "nd", "al", "ing", "ion", "pro",
                                       "co", "de", "t",  "s",  "n",  "l",   "r",   "c",
                                       "m",  "p",  "qu", "tr", "sh", "ch",  "ent", "ate"};
  std::string word;
  for (size_t i = 1 + random() % 5; i > 0; --i) word += kParts[random() % 32];
  if (random() % 6 == 0) word[0] = static_cast<char>(word[0] - 32);
  return word;
}

// Bytes, words with and without a space, numbers, runs of spaces, punctuation as it stands in code,
// characters of two and three bytes.
inline std::shared_ptr<const Vocabulary> synthetic(size_t size) {
  std::mt19937 random(5);
  std::set<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace(1, static_cast<char>(byte));
  for (size_t i = 1; i <= 96; ++i) texts.emplace(i, ' ');
  for (int i = 0; i < 1000; ++i) texts.insert(std::to_string(i));
  static const std::string kMarks = "\"'{}[](),.:;!?-_+*/=<>\\\n\t #";
  for (size_t i = 0; i < size / 24; ++i) {
    std::string text = random() % 3 == 0 ? " " : "";
    for (size_t k = 1 + random() % 4; k > 0; --k) text += kMarks[random() % kMarks.size()];
    if (random() % 4 == 0) text += random_word(random);
    texts.insert(text);
  }
  for (uint32_t c = 0xA1; c < 0xA1 + size / 12; ++c) {
    std::string text;
    if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    }
    texts.insert(random() % 3 == 0 ? " " + text : text);
  }
  while (texts.size() < size - 1) {
    const std::string word = random_word(random);
    texts.insert(random() % 2 == 0 ? " " + word : word);
  }
  std::vector<TokenText> tokens;
  for (const std::string& text : texts) tokens.push_back({text, ""});
  tokens.push_back({"", "</s>"});
  const auto end = static_cast<int32_t>(tokens.size()) - 1;
  return Vocabulary::create(std::move(tokens), {&end, 1}).value();
}

// Of a GGUF file; null if it cannot be read.
inline std::shared_ptr<const Vocabulary> read(const char* path) {
  const auto file = gguf::GgufFile::open(path);
  if (!file.ok()) return nullptr;
  auto spec = gguf::read_vocab(file.value()->metadata());
  if (!spec.ok()) return nullptr;
  const auto tokenizer = tokenizer::create_tokenizer(std::move(spec).value());
  if (!tokenizer.ok()) return nullptr;
  const auto made = Vocabulary::create(*tokenizer.value());
  return made.ok() ? made.value() : nullptr;
}

// Greedy tokenization by the longest token; -1 for a byte without a token.
inline std::vector<int32_t> spell(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<int32_t> tokens;
  const auto trie = vocabulary.trie();
  for (size_t at = 0; at < text.size();) {
    uint32_t node = 0;
    int32_t best = -1;
    size_t length = 1;
    for (size_t end = at; end < text.size(); ++end) {
      uint32_t child = node + 1;
      while (child < trie[node].skip && trie[child].byte != static_cast<uint8_t>(text[end])) {
        child = trie[child].skip;
      }
      if (child >= trie[node].skip) break;
      node = child;
      if (trie[node].token >= 0) {
        best = trie[node].token;
        length = end + 1 - at;
      }
    }
    tokens.push_back(best);
    at += length;
  }
  return tokens;
}

}  // namespace gen::grammar::bench
