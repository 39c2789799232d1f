// SPDX-License-Identifier: Apache-2.0
// What a mask costs, with accepting the token before it: random JSON documents are spelt in the
// longest tokens, and at every token the mask is made and the token accepted. Three ways: cold (a
// grammar never used before), for each document another copy of the grammar, and warm (masks of
// earlier documents are there). Before it measures, it checks that every document is taken and that
// every mask has the token that comes next.
//   grammar_bench [--vocab 32000,128256] [--gguf FILE] [--documents 100]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab.h"

namespace gen::grammar {
namespace {

// Time of this thread alone: what else the machine does is not the grammar's.
double now_micros() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

double micros(double begin) { return now_micros() - begin; }

std::string random_word(std::mt19937& random) {
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
std::vector<TokenText> synthetic(size_t size) {
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
  return tokens;
}

std::shared_ptr<const Vocabulary> read(const char* path) {
  const auto file = gguf::GgufFile::open(path);
  if (!file.ok()) return nullptr;
  auto spec = gguf::read_vocab(file.value()->metadata());
  if (!spec.ok()) return nullptr;
  const auto tokenizer = tokenizer::create_tokenizer(std::move(spec).value());
  if (!tokenizer.ok()) return nullptr;
  const auto made = Vocabulary::create(*tokenizer.value());
  return made.ok() ? made.value() : nullptr;
}

std::string random_json(std::mt19937& random, int depth) {
  const char* space = random() % 2 == 0 ? " " : "";
  switch (depth > 0 ? random() % 7 : 2 + random() % 4) {
    case 0:
    case 6: {
      std::string text = "{";
      for (size_t i = random() % 6; i > 0; --i) {
        text += (text.size() > 1 ? std::string(",") + space : "") + "\"" + random_word(random) +
                "\":" + space + random_json(random, depth - 1);
      }
      return text + "}";
    }
    case 1: {
      std::string text = "[";
      for (size_t i = random() % 6; i > 0; --i) {
        text += (text.size() > 1 ? std::string(",") + space : "") + random_json(random, depth - 1);
      }
      return text + "]";
    }
    case 2:
      return std::to_string(static_cast<int>(random() % 2000) - 500) + ".5e3";
    case 3:
      return random() % 2 == 0 ? "true" : "null";
    default: {
      std::string text = "\"";
      for (size_t i = random() % 12; i > 0; --i) {
        text += random_word(random) + (random() % 9 == 0 ? "\\n" : " \xC3\xA9");
      }
      return text + "\"";
    }
  }
}

std::vector<int32_t> spell(const Vocabulary& vocabulary, const std::string& text) {
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

void histogram(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  const auto at = [&](double share) {
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  std::printf(
      "  %-22s %7zu masks, us: mean %.1f p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f worst %.1f\n", name,
      times.size(), sum / static_cast<double>(times.size()), at(0.5), at(0.9), at(0.99), at(0.999),
      times.back());
}

bool run(const Grammar& grammar, const std::shared_ptr<const Vocabulary>& vocabulary,
         const std::vector<int32_t>& document, std::vector<double>* times) {
  auto over = grammar.over(vocabulary);
  if (!over.ok()) return false;
  auto matcher = Matcher::create(over.value());
  if (!matcher.ok()) return false;
  std::vector<uint64_t> mask(vocabulary->words());
  for (const int32_t token : document) {
    const auto begin = now_micros();
    if (!matcher->mask(mask).ok()) return false;
    const bool allowed = (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
    const auto taken = matcher->accept_token(token);
    times->push_back(micros(begin));
    if (!allowed || !taken.ok() || !taken.value()) return false;
  }
  return matcher->is_complete();
}

bool measure(const std::shared_ptr<const Vocabulary>& vocabulary, int n_documents) {
  std::mt19937 random(9);
  std::vector<std::vector<int32_t>> documents;
  for (int i = 0; i < n_documents; ++i) {
    documents.push_back(spell(*vocabulary, random_json(random, 4)));
    for (const int32_t token : documents.back()) {
      if (token < 0) return false;
    }
  }
  std::printf("vocabulary %d, trie of %zu\n", vocabulary->size(), vocabulary->trie().size());
  std::vector<double> compile;
  std::vector<std::shared_ptr<const Grammar>> grammars;
  for (int i = 0; i < n_documents; ++i) {
    const auto begin = now_micros();
    grammars.push_back(Grammar::any_json().value());
    compile.push_back(micros(begin));
  }
  std::sort(compile.begin(), compile.end());
  std::printf("  any JSON: compile us p50 %.0f worst %.0f, %zu states, %zu bytes\n",
              compile[compile.size() / 2], compile.back(), grammars[0]->machines().states.size(),
              grammars[0]->machines().memory());
  std::vector<double> cold;
  std::vector<double> fresh;
  std::vector<double> warm;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (!run(*grammars[i], vocabulary, documents[i], &fresh)) return false;
  }
  const auto shared = Grammar::any_json().value();
  for (const auto& document : documents) {
    if (!run(*shared, vocabulary, document, &cold)) return false;
  }
  for (const auto& document : documents) {
    if (!run(*shared, vocabulary, document, &warm)) return false;
  }
  histogram("a grammar a document", fresh);
  histogram("one grammar, cold", cold);
  histogram("one grammar, warm", warm);
  std::printf("  masks kept: %zu bytes\n", shared->over(vocabulary).value()->statistics().bytes);
  return true;
}

}  // namespace
}  // namespace gen::grammar

int main(int argc, char** argv) {
  std::string sizes = "32000,128256";
  int n_documents = 100;
  std::vector<std::shared_ptr<const gen::grammar::Vocabulary>> vocabularies;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--vocab") sizes = argv[i + 1];
    if (option == "--documents") n_documents = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--gguf") {
      vocabularies.push_back(gen::grammar::read(argv[i + 1]));
      if (vocabularies.back() == nullptr) return std::printf("cannot read %s\n", argv[i + 1]), 1;
    }
  }
  for (size_t at = 0; at < sizes.size();) {
    const size_t size = std::strtoull(sizes.c_str() + at, nullptr, 10);
    at = std::min(sizes.find(',', at), sizes.size() - 1) + 1;
    if (size < 2000) continue;
    auto tokens = gen::grammar::synthetic(size);
    const auto end = static_cast<int32_t>(tokens.size()) - 1;
    vocabularies.push_back(gen::grammar::Vocabulary::create(std::move(tokens), {&end, 1}).value());
  }
  for (const auto& vocabulary : vocabularies) {
    if (!gen::grammar::measure(vocabulary, n_documents)) return std::printf("WRONG RESULT\n"), 1;
  }
  return 0;
}
