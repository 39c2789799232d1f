// SPDX-License-Identifier: Apache-2.0
// Ids are those of the SentencePiece library, exactly: for models that its trainer makes with all
// its normalizers, and for vocabularies at random, with equal scores, unused and user-defined
// pieces. GEN_TRIALS sets the number of random vocabularies.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "base/utf8.h"
#include "support/sanitized.h"
#include "tokenizer/sentencepiece_models.h"
#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using Random = std::mt19937;
using test::Ids;

constexpr const char* kSpaceSign = "\xE2\x96\x81";

int trials() {
  const char* const value = std::getenv("GEN_TRIALS");
  return value != nullptr ? std::atoi(value) : gen::test::fewer(300);
}

std::string read_file(const std::string& name) {
  std::ifstream file(GEN_TEST_SOURCE_DIR "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A model as the library has it.
class Library {
 public:
  explicit Library(const std::string& file) {
    const auto status = processor_.LoadFromSerializedProto(file);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  [[nodiscard]] Ids encode(std::string_view text) const {
    std::vector<int> ids;
    EXPECT_TRUE(processor_.Encode(text, &ids).ok());
    return {ids.begin(), ids.end()};
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

std::shared_ptr<const Tokenizer> load(const std::string& file) {
  auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}

// Text of `parts` and of all that is unusual: control characters, all planes, white space in runs,
// combining marks, the sign for a space, long words.
std::string random_text(Random* random, const std::vector<std::string>& parts, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    const auto draw = [&](uint32_t below) { return static_cast<uint32_t>((*random)() % below); };
    const uint32_t run = draw(8) == 0 ? 1 + draw(12) : 1;
    uint32_t character = 0;
    switch (draw(24)) {
      case 0:
        character = draw(0x20);
        break;
      case 1:
        character = draw(0x110000);
        break;
      case 2:
        character = 0x80 + draw(0x800);
        break;
      case 3:
        character = 0x300 + draw(0x70);
        break;
      case 4:
        character = 0x2000 + draw(0x600);
        break;
      case 5:
        character = 0xFF00 + draw(0x100);
        break;
      case 6:
        character = 0x3000 + draw(0x9000);
        break;
      case 7:
        for (uint32_t k = 0; k < run; ++k) text += kSpaceSign;
        continue;
      case 8:
      case 9:
      case 10:
        text.append(run, ' ');
        continue;
      case 11:
        text.append(run, "\t\n\r"[draw(3)]);
        continue;
      case 12:
        for (uint32_t k = 0; k < 5 * run; ++k) text += parts[draw(4) % parts.size()];
        continue;
      default:
        for (uint32_t k = 0; k < run; ++k) text += parts[(*random)() % parts.size()];
        continue;
    }
    for (uint32_t k = 0; k < run; ++k) utf8_append(character, &text);
  }
  return text;
}

// Short texts, empty ones too, and some that are long enough for words to be met again.
void expect_equal_ids(const Tokenizer& tokenizer, const Library& library, Random* random,
                      const std::vector<std::string>& parts, const std::string& what) {
  for (int i = 0; i < 24; ++i) {
    const std::string text = random_text(random, parts, i < 20 ? (*random)() % 30 : 600);
    ASSERT_EQ(test::encode(tokenizer, text), library.encode(text)) << what << ": \"" << text << '"';
  }
}

std::vector<std::string> with_plain_spaces(const SpModel& model) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.types[i] == TokenType::kByte) continue;
    std::string text = model.pieces[i];
    for (size_t at; (at = text.find(kSpaceSign)) != std::string::npos;) text.replace(at, 3, " ");
    parts.push_back(text);
  }
  return parts;
}

// Pieces are put together from few letters and from each other, so that most can be merged, often
// in several ways; scores are often equal. Neither the bytes nor any letter need be there.
SpModel random_model(Random* random, SpModelType kind) {
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>((*random)() % below); };
  SpModel model;
  model.model_type = kind;
  model.byte_fallback = draw(2) == 0;
  model.add_dummy_prefix = draw(2) == 0;
  model.remove_extra_whitespaces = draw(2) == 0;
  model.escape_whitespaces = draw(4) != 0;
  const auto add = [&](const std::string& text, TokenType type, float score) {
    model.pieces.push_back(text);
    model.types.push_back(type);
    model.scores.push_back(score);
  };
  add("<unk>", TokenType::kUnknown, 0);
  add("<s>", TokenType::kControl, 0);
  if (model.byte_fallback) {
    const VocabSpec bytes = test::sp_vocab({});
    for (size_t i = 3; i < bytes.tokens.size(); ++i) add(bytes.tokens[i], TokenType::kByte, 0);
  }
  std::vector<std::string> texts = {kSpaceSign,     "a", "b", "c", "\xC3\xA9",
                                    "\xE6\x97\xA5", " ", "\n"};
  const uint32_t unused = draw(3) == 0 ? 4 : 0;  // in 16
  const uint32_t kept = draw(2) == 0 ? 2 : 0;
  const uint32_t scores = 1 + draw(30);
  std::set<std::string> seen;
  const auto add_piece = [&](const std::string& text) {
    if (text.size() > 60 || !seen.insert(text).second) return;
    const uint32_t chance = draw(16);
    const TokenType type = chance < unused          ? TokenType::kUnused
                           : chance < unused + kept ? TokenType::kUserDefined
                                                    : TokenType::kNormal;
    const float score = static_cast<float>(draw(scores)) * (draw(8) == 0 ? 0.37F : -0.5F);
    add(text, type, score);
  };
  for (const std::string& text : texts) {
    if (draw(5) != 0) add_piece(text);
  }
  const uint32_t count = 1 + draw(60);
  for (uint32_t i = 0; i < count; ++i) {
    std::string text = texts[draw(static_cast<uint32_t>(texts.size()))];
    text += texts[draw(static_cast<uint32_t>(texts.size()))];
    add_piece(text);
    texts.push_back(text);
  }
  return model;
}

void random_vocabularies(SpModelType kind, uint32_t seed) {
  Random random(seed);
  for (int trial = 0; trial < trials(); ++trial) {
    const SpModel model = random_model(&random, kind);
    const bool empty = std::none_of(model.types.begin(), model.types.end(), [](TokenType type) {
      return type == TokenType::kNormal || type == TokenType::kUserDefined;
    });
    if (empty) continue;  // the library refuses it
    const std::string file = test::serialize_sp_model(model);
    const auto tokenizer = load(file);
    ASSERT_TRUE(tokenizer);
    expect_equal_ids(*tokenizer, Library(file), &random, with_plain_spaces(model),
                     "trial " + std::to_string(trial));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(SentencePieceLibrary, BpeVocabulariesAtRandom) { random_vocabularies(SpModelType::kBpe, 101); }

TEST(SentencePieceLibrary, UnigramVocabulariesAtRandom) {
  random_vocabularies(SpModelType::kUnigram, 102);
}

// The library takes an unused piece apart as it was last made anywhere in the text, we as it was
// made in this word: few letters, so that there are several ways to each piece, and one ("c") that
// no piece holds beside another, where a text is cut.
TEST(SentencePieceLibrary, UnusedPieces) {
  Random random(106);
  for (int trial = 0; trial < trials(); ++trial) {
    SpModel model;
    model.model_type = SpModelType::kBpe;
    model.add_dummy_prefix = random() % 2 == 0;
    model.remove_extra_whitespaces = false;
    const auto add = [&](const std::string& text, TokenType type, float score) {
      if (std::find(model.pieces.begin(), model.pieces.end(), text) != model.pieces.end()) return;
      model.pieces.push_back(text);
      model.types.push_back(type);
      model.scores.push_back(score);
    };
    add("<unk>", TokenType::kUnknown, 0);
    std::vector<std::string> texts = {"a", "b"};
    for (const char* letter : {"a", "b", "c", kSpaceSign}) add(letter, TokenType::kNormal, -9);
    if (random() % 3 == 0) add("bab", TokenType::kUserDefined, 0);
    for (int i = 0; i < 12; ++i) {
      const std::string text = texts[random() % texts.size()] + texts[random() % texts.size()];
      if (text.size() > 8) continue;
      const TokenType type = random() % 2 == 0 ? TokenType::kUnused : TokenType::kNormal;
      add(text, type, -static_cast<float>(random() % 4));
      texts.push_back(text);
    }
    const std::string file = test::serialize_sp_model(model);
    const auto tokenizer = load(file);
    ASSERT_TRUE(tokenizer);
    const Library library(file);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      const size_t length = 1 + random() % (i < 36 ? 16 : 200);
      while (text.size() < length) text += "aaaabbbbc "[random() % 10];
      ASSERT_EQ(test::encode(*tokenizer, text), library.encode(text))
          << "trial " << trial << ": \"" << text << '"';
    }
  }
}

// Vocabularies as GGUF files have them: control pieces are no text, user-defined ones are found
// before.
TEST(SentencePieceLibrary, GgufVocabulariesAtRandom) {
  Random random(103);
  for (int trial = 0; trial < trials() / 3; ++trial) {
    SpModel model = random_model(&random, SpModelType::kBpe);
    std::replace(model.types.begin(), model.types.end(), TokenType::kUserDefined,
                 TokenType::kNormal);
    VocabSpec spec;
    spec.tokens = model.pieces;
    spec.scores = model.scores;
    spec.types = model.types;
    spec.unk = 0;
    spec.add_space_prefix = model.add_dummy_prefix;
    spec.remove_extra_whitespaces = model.remove_extra_whitespaces;
    spec.escape_whitespaces = model.escape_whitespaces;
    const auto tokenizer = test::must_create(spec);
    ASSERT_TRUE(tokenizer);
    expect_equal_ids(*tokenizer, Library(test::serialize_sp_model(model)), &random,
                     with_plain_spaces(model), "trial " + std::to_string(trial));
    if (HasFatalFailure()) return;
  }
}

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::string_view text) : rest_(text) { Next(); }
  [[nodiscard]] bool done() const override { return done_; }
  void Next() override {
    done_ = rest_.empty();
    line_.assign(rest_.substr(0, rest_.find('\n')));
    rest_.remove_prefix(std::min(rest_.size(), line_.size() + 1));
  }
  [[nodiscard]] const std::string& value() const override { return line_; }
  [[nodiscard]] sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string_view rest_;
  std::string line_;
  bool done_ = false;
};

TEST(SentencePieceLibrary, TrainedModels) {
  const std::string corpus = read_file("examples/demo_model/heldout.txt").substr(0, 12000) +
                             "\n\xC2\xBD \xEF\xBC\xA1\xE2\x84\xA2 \xEF\xAC\x81 e\xCC\x81 "
                             "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xCE\x91\xCE\xB2\n";
  struct Case {
    const char* type;
    const char* normalizer;
    const char* options;
  };
  const Case cases[] = {
      {"bpe", "identity", "--byte_fallback=true --remove_extra_whitespaces=false"},
      {"bpe", "nmt_nfkc", "--user_defined_symbols=<sep>,the_king,a"},
      {"bpe", "nfkc_cf", "--byte_fallback=true --add_dummy_prefix=false"},
      {"unigram", "nmt_nfkc", ""},
      {"unigram", "nmt_nfkc_cf", "--byte_fallback=true --user_defined_symbols=<sep>,and,th"},
      {"unigram", "nfkc", "--remove_extra_whitespaces=false --split_by_whitespace=false"},
  };
  Random random(104);
  for (const Case& one : cases) {
    const std::string what = std::string(one.type) + ' ' + one.normalizer + ' ' + one.options;
    Sentences sentences(corpus);
    std::string file;
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        std::string("--minloglevel=4 --num_threads=1 --vocab_size=400 --hard_vocab_limit=false ") +
            "--character_coverage=1.0 --model_type=" + one.type +
            " --normalization_rule_name=" + one.normalizer + ' ' + one.options,
        &sentences, &file);
    ASSERT_TRUE(status.ok()) << what << ": " << status.ToString();
    const auto tokenizer = load(file);
    ASSERT_TRUE(tokenizer);
    const Library library(file);
    ASSERT_EQ(test::encode(*tokenizer, corpus), library.encode(corpus)) << what;
    std::vector<std::string> parts = {"the",          "king",
                                      "<sep>",        "the king",
                                      " a ",          "\xEF\xAC\x81",
                                      "\xEF\xBC\xA1", "\xE3\x8E\x8F",
                                      "\xC2\xA0",     "e\xCC\x81",
                                      "\xEF\xB7\xBA", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",
                                      "\xC2\xAD",     "A",
                                      "\xCE\xA3"};
    for (int i = 0; i < 30; ++i) {
      expect_equal_ids(*tokenizer, library, &random, parts, what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SentencePieceLibrary, ModelFilesOfTheOtherTests) {
  Random random(105);
  for (const char* name : {"bpe", "unigram"}) {
    const std::string file = read_file(std::string("tests/tokenizer/data/") + name + ".model");
    const auto tokenizer = load(file);
    ASSERT_TRUE(tokenizer);
    const std::vector<std::string> parts = {"grey goose", "the",  " mill", "goose", "<sep>",
                                            "...",        "fine", "k",     "3",     " "};
    for (int i = 0; i < 40; ++i) {
      expect_equal_ids(*tokenizer, Library(file), &random, parts, name);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gen::tokenizer
