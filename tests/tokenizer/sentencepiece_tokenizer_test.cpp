// SPDX-License-Identifier: Apache-2.0
// The SentencePiece kind: ids worked out by hand, ids that spm_encode gave for two trained models
// (tests/tokenizer/data/make_models.sh), ids by the definition of score-ordered merging for random
// vocabularies and long texts, round trips, damaged files. Against the library itself:
// sentencepiece_library_test.cpp.
#include "tokenizer/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>

#include "base/utf8.h"
#include "tokenizer/sentencepiece_models.h"
#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::add_token;
using test::decode;
using test::encode;
using test::Ids;
using test::must_create;
using test::sp_vocab;

int32_t byte_id(char c) { return 3 + static_cast<unsigned char>(c); }

TEST(SentencePieceTokenizer, IdsByHand) {
  // 259 _  260 a  261 b  262 _a  263 ab  264 _ab, best first: "_a" goes before "ab"
  const auto tokenizer = must_create(sp_vocab({"_", "a", "b", "_a", "ab", "_ab"}));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
  EXPECT_EQ(encode(*tokenizer, "ab"), Ids{264});
  EXPECT_EQ(encode(*tokenizer, " ab"), (Ids{259, 264}));
  EXPECT_EQ(encode(*tokenizer, "bab"), (Ids{259, 261, 263}));
  EXPECT_EQ(encode(*tokenizer, "a b"), (Ids{262, 259, 261}));
  EXPECT_EQ(encode(*tokenizer, "c\n"), (Ids{259, byte_id('c'), byte_id('\n')}));
  EXPECT_EQ(encode(*tokenizer, "\xC3\xA9"), (Ids{259, byte_id('\xC3'), byte_id('\xA9')}));
  EXPECT_EQ(encode(*tokenizer, std::string(1, '\0')), (Ids{259, 3}));
  EXPECT_EQ(encode(*tokenizer, "ab", kAddBos), (Ids{1, 264}));
}

TEST(SentencePieceTokenizer, SpacePrefixIsUndoneByDecoding) {
  VocabSpec spec = sp_vocab({"_", "a", "_a", "__"});
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(decode(*tokenizer, {261, 261}), "a a");
  EXPECT_EQ(decode(*tokenizer, {1, 261}), "a");
  EXPECT_EQ(decode(*tokenizer, {262, 260}), " a");
  EXPECT_EQ(decode(*tokenizer, {260, 261}), "a a");
  EXPECT_EQ(decode(*tokenizer, {byte_id('\n'), 261}), "\n a");
  EXPECT_EQ(decode(*tokenizer, {1, 261, 2}, true), "<s>a</s>");
  spec.add_space_prefix = false;
  const auto bare = must_create(spec);
  EXPECT_EQ(encode(*bare, "a a"), (Ids{260, 261}));
  EXPECT_EQ(decode(*bare, {261, 261}), " a a");
}

TEST(SentencePieceTokenizer, SpecialTokensStartATextAnew) {
  VocabSpec spec = sp_vocab({"_", "a", "_a"});
  add_token(&spec, "<u>", TokenType::kUserDefined);  // 262
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "a<u>a"), (Ids{261, 262, 261}));
  EXPECT_EQ(decode(*tokenizer, {261, 262, 261}), "a<u>a");
  EXPECT_EQ(encode(*tokenizer, "<s>a</s>", kParseSpecial), (Ids{1, 261, 2}));
  const Ids plain = encode(*tokenizer, "<s>a");
  EXPECT_EQ(plain, (Ids{259, byte_id('<'), byte_id('s'), byte_id('>'), 260}));
}

// Words are not joined over a special token, nor is a space put inside a text made of segments.
TEST(SentencePieceTokenizer, SegmentsGetOneSpace) {
  VocabSpec spec = sp_vocab({"_", "a", "aa", "_aa"});
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  const TextSegment segments[] = {{"<s>a", true}, {"a", false}, {"</s>", true}};
  Ids ids;
  ASSERT_TRUE(tokenizer->encode_segments(segments, 0, kTextStart, &ids).ok());
  EXPECT_EQ(ids, (Ids{1, 262, 2}));
}

TEST(SentencePieceTokenizer, SeveralUnknownTokens) {
  VocabSpec spec = sp_vocab({"_", "a"});
  add_token(&spec, "[PAD1]", TokenType::kUnknown);
  add_token(&spec, "[PAD2]", TokenType::kUnknown);
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "a"), (Ids{259, 260}));
  EXPECT_EQ(encode(*tokenizer, "[PAD2]", kParseSpecial), Ids{262});
  spec.types[0] = TokenType::kControl;  // as in Phi-3
  EXPECT_EQ(encode(*must_create(spec), "a"), (Ids{259, 260}));
}

VocabSpec without_bytes(const std::vector<std::string>& pieces) {
  VocabSpec spec = sp_vocab(pieces);
  const auto drop = [](auto* list) { list->erase(list->begin() + 3, list->begin() + 259); };
  drop(&spec.tokens);
  drop(&spec.types);
  drop(&spec.scores);
  return spec;
}

TEST(SentencePieceTokenizer, UnknownCharacters) {
  VocabSpec spec = without_bytes({"_", "a"});
  EXPECT_EQ(encode(*must_create(spec), "axya"), (Ids{3, 4, 0, 4}));
  spec.types[0] = TokenType::kNormal;
  spec.unk = -1;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "aa"), (Ids{3, 4, 4}));
  Ids ids = {9};
  const Status status = tokenizer->encode("aza", 0, &ids);
  EXPECT_EQ(status.code(), Code::kTokenizer);
  EXPECT_STREQ(status.message(), "text holds a character that the vocabulary cannot express");
  EXPECT_EQ(ids, Ids{9});
}

// A run of unknown characters is one token, in a long text as in a short one.
TEST(SentencePieceTokenizer, LongRunOfUnknownCharacters) {
  const auto tokenizer = must_create(without_bytes({"_", "a"}));
  ASSERT_TRUE(tokenizer);
  std::string text;
  while (text.size() < 5000) text += "xy";
  EXPECT_EQ(encode(*tokenizer, text + "a"), (Ids{3, 0, 4}));
}

TEST(SentencePieceTokenizer, InvalidUtf8) {
  const auto tokenizer = must_create(sp_vocab({"_", "a"}));
  ASSERT_TRUE(tokenizer);
  const std::pair<const char*, const char*> cases[] = {
      {"\xFF", "text is not UTF-8 at byte 0 (0xff)"},
      {"a\xC3", "text is not UTF-8 at byte 1 (0xc3)"},
      {"aa\xED\xA0\x80", "text is not UTF-8 at byte 2 (0xed)"},
      {"\xC0\x80", "text is not UTF-8 at byte 0 (0xc0)"}};
  for (const auto& [text, message] : cases) {
    Ids ids;
    const Status status = tokenizer->encode(text, kAddBos, &ids);
    EXPECT_EQ(status.code(), Code::kTokenizer);
    EXPECT_STREQ(status.message(), message);
    EXPECT_TRUE(ids.empty());
  }
}

// A control token of one character must not be taken for that character.
TEST(SentencePieceTokenizer, ControlTokensAreNotText) {
  VocabSpec spec = sp_vocab({"_", "a"});
  add_token(&spec, "b", TokenType::kControl);
  add_token(&spec, "_", TokenType::kControl);
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "ab_"), (Ids{259, 260, byte_id('b'), byte_id('_')}));
  EXPECT_EQ(encode(*tokenizer, "ab", kParseSpecial), (Ids{259, 260, 261}));
}

TEST(SentencePieceTokenizer, UnusedPiecesComeApartAgain) {
  VocabSpec spec = sp_vocab({"_", "a", "b", "c", "ab", "abc"});
  spec.types[263] = TokenType::kUnused;  // ab
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "ab"), (Ids{259, 260, 261}));
  EXPECT_EQ(encode(*tokenizer, "abc"), (Ids{259, 264}));
}

// Byte-pair encoding by scores as it is defined: join the best pair, leftmost of equals, until none
// is left; what is no piece then is written in bytes.
Ids encode_slowly(const VocabSpec& spec, std::string_view text) {
  std::map<std::string, int32_t> normal;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.types[i] == TokenType::kNormal) normal[spec.tokens[i]] = static_cast<int32_t>(i);
  }
  std::vector<std::string> symbols = {"\xE2\x96\x81"};
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    utf8_next(text, &offset);
    const auto character = text.substr(begin, offset - begin);
    symbols.emplace_back(character == " " ? "\xE2\x96\x81" : character);
  }
  for (;;) {
    size_t best = symbols.size();
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = normal.find(symbols[i] + symbols[i + 1]);
      if (found == normal.end()) continue;
      const float score = spec.scores[static_cast<size_t>(found->second)];
      if (best == symbols.size() || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) {
    const auto found = normal.find(symbol);
    if (found != normal.end()) {
      ids.push_back(found->second);
    } else {
      for (const char c : symbol) ids.push_back(byte_id(c));
    }
  }
  return ids;
}

TEST(SentencePieceTokenizer, EqualsTheDefinition) {
  std::mt19937 random(31);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> pieces = {"_", "a", "b", "\xC3\xA9"};
    for (int i = 0; i < 20; ++i) {
      std::string piece = pieces[random() % pieces.size()] + pieces[random() % pieces.size()];
      if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
    }
    VocabSpec spec = sp_vocab(pieces);
    for (float& score : spec.scores) {
      if (random() % 4 == 0) score = -static_cast<float>(random() % 5);
    }
    const auto tokenizer = must_create(spec);
    ASSERT_TRUE(tokenizer);
    for (int i = 0; i < 20; ++i) {
      const std::string text = test::random_text(&random, 1 + random() % 25);
      const Ids ids = encode(*tokenizer, text);
      EXPECT_EQ(ids, encode_slowly(spec, text)) << text;
      EXPECT_EQ(decode(*tokenizer, ids), text);
    }
    // long enough to be cut into words
    std::string text = test::random_text(&random, 1200);
    const Ids ids = encode(*tokenizer, text);
    ASSERT_EQ(ids, encode_slowly(spec, text));
    ASSERT_EQ(decode(*tokenizer, ids), text);
  }
}

// Texts of one word, which nothing cuts: this ends at all only if time grows about as the text
// does.
TEST(SentencePieceTokenizer, AMebibyteOfOneCharacter) {
  constexpr size_t kCount = size_t{1} << 20;
  // 259 _  260 a  261 aa  262 aaaa  263 __  264 ____ 265 aaa, in this order of preference
  VocabSpec spec = sp_vocab({"_", "a", "aa", "aaaa", "__", "____", "aaa"});
  spec.add_space_prefix = false;
  const auto tokenizer = must_create(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(encode(*tokenizer, std::string(kCount, 'a')), Ids(kCount / 4, 262));
  EXPECT_EQ(encode(*tokenizer, std::string(kCount, ' ')), Ids(kCount / 4, 264));
  Ids expected(kCount / 4, 262);
  expected.push_back(265);
  EXPECT_EQ(encode(*tokenizer, std::string(kCount + 3, 'a')), expected);
  std::string text;
  Ids bytes;
  for (size_t i = 0; i < kCount / 4; ++i) {
    text += "\xE6\x97\xA5";
    for (const char c : {'\xE6', '\x97', '\xA5'}) bytes.push_back(byte_id(c));
  }
  EXPECT_EQ(encode(*tokenizer, text), bytes);
}

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/") + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(SentencePieceModel, GivesTheIdsOfSpmEncode) {
  const auto texts = lines_of(read_file("texts.txt"));
  ASSERT_EQ(texts.size(), 9U);
  for (const std::string kind : {"bpe", "unigram"}) {
    const std::string file = read_file(kind + ".model");
    auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto expected = lines_of(read_file("ids_" + kind + ".txt"));
    ASSERT_EQ(expected.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      Ids ids;
      std::stringstream line(expected[i]);
      for (int32_t id = 0; line >> id;) ids.push_back(id);
      EXPECT_EQ(encode(**made, texts[i]), ids) << kind << ": " << texts[i];
      if (kind == "bpe") {
        EXPECT_EQ(decode(**made, ids), texts[i]);
      }
    }
  }
}

TEST(SentencePieceModel, KnowsItsSpecialTokens) {
  const std::string file = read_file("bpe.model");
  auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
  ASSERT_TRUE(made.ok());
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(tokenizer.special(Special::kUnk), 0);
  EXPECT_EQ(tokenizer.special(Special::kBos), 1);
  EXPECT_EQ(tokenizer.special(Special::kEos), 2);
  EXPECT_EQ(tokenizer.special(Special::kPad), -1);
  EXPECT_TRUE(tokenizer.spec().add_bos);
  EXPECT_TRUE(tokenizer.is_control(3));  // <ctl>
  EXPECT_EQ(encode(tokenizer, "<ctl>", kParseSpecial), Ids{3});
  EXPECT_EQ(tokenizer.spec().types[4], TokenType::kUserDefined);
}

TEST(SentencePieceModel, RoundTrips) {
  const std::string file = read_file("bpe.model");
  auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
  ASSERT_TRUE(made.ok());
  std::mt19937 random(37);
  for (int round = 0; round < 300; ++round) {
    std::string text = test::random_text(&random, random() % 40);
    if (random() % 3 == 0) text += "<sep>";
    if (random() % 3 == 0) text += " grey goose " + text;
    EXPECT_EQ(decode(**made, encode(**made, text)), text);
  }
}

SpModel small_model() {
  SpModel model;
  model.model_type = SpModelType::kBpe;
  const VocabSpec spec = without_bytes({"_", "a", "_a"});
  model.pieces = spec.tokens;
  model.scores = spec.scores;
  model.types = spec.types;
  return model;
}

Status load_status(const SpModel& model) {
  const std::string file = test::serialize_sp_model(model);
  return load_sentencepiece_model(std::as_bytes(std::span(file))).status();
}

TEST(SentencePieceModel, RefusesWhatItCannotKeep) {
  EXPECT_TRUE(load_status(small_model()).ok());
  SpModel model = small_model();
  model.model_type = SpModelType::kWord;
  EXPECT_STREQ(load_status(model).message(), "sentencepiece model type 3, supported are 1 and 2");
  EXPECT_EQ(load_status(model).code(), Code::kUnsupported);
  model = small_model();
  model.treat_whitespace_as_suffix = true;
  EXPECT_STREQ(load_status(model).message(), "sentencepiece model with white space as suffix");
  model = small_model();
  model.types[5] = TokenType::kByte;
  EXPECT_STREQ(load_status(model).message(), "byte token 5 is not of the form <0x0A>");
  model = small_model();
  model.charsmap = "x";
  EXPECT_STREQ(load_status(model).message(), "sentencepiece normalizer map: too short");
  model = SpModel();
  EXPECT_STREQ(load_status(model).message(), "vocabulary has no tokens");
}

Result<std::shared_ptr<const Tokenizer>> load_model(const SpModel& model) {
  const std::string file = test::serialize_sp_model(model);
  return load_sentencepiece_model(std::as_bytes(std::span(file)));
}

void add_piece(SpModel* model, std::string text, TokenType type, float score = 0) {
  model->pieces.push_back(std::move(text));
  model->scores.push_back(score);
  model->types.push_back(type);
}

// Any number of user-defined pieces may begin alike, the longest that fits is taken.
TEST(SentencePieceModel, NestedUserDefinedPieces) {
  SpModel model = small_model();
  std::string piece;
  for (size_t i = 0; i < 100; ++i) add_piece(&model, piece += 'x', TokenType::kUserDefined);
  auto made = load_model(model);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(encode(**made, std::string(106, 'x')), (Ids{3, 5 + 100, 5 + 6}));
}

// The library cannot hold these: in its tries a zero byte ends a piece.
TEST(SentencePieceModel, PiecesWithZeroBytes) {
  for (const SpModelType kind : {SpModelType::kBpe, SpModelType::kUnigram}) {
    SpModel model = small_model();
    model.model_type = kind;
    add_piece(&model, std::string("a\0", 2), TokenType::kNormal, 1);     // 6
    add_piece(&model, std::string("\0\0", 2), TokenType::kUserDefined);  // 7
    auto made = load_model(model);
    ASSERT_TRUE(made.ok()) << made.status().message();
    Ids expected = {5, 6, 4, 7, 4};
    // The scores of "_" and "a" are 0 and -1, that of "_a" is -2.
    if (kind == SpModelType::kUnigram) expected = {3, 4, 6, 4, 7, 4};
    EXPECT_EQ(encode(**made, std::string("aa\0a\0\0a", 7)), expected);
  }
}

TEST(SentencePieceModel, NothingButControlPieces) {
  SpModel model = small_model();
  model.model_type = SpModelType::kUnigram;
  for (TokenType& type : model.types) type = TokenType::kControl;
  auto made = load_model(model);
  ASSERT_TRUE(made.ok());
  Ids ids;
  EXPECT_EQ((*made)->encode("a", 0, &ids).code(), Code::kTokenizer);
  EXPECT_EQ(encode(**made, "<s>", kParseSpecial), Ids{1});
}

// Every prefix and every one-byte change of a model file is loaded or refused, and nothing is
// printed.
TEST(SentencePieceModel, DamagedFiles) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const std::string good = read_file("unigram.model");
  std::mt19937 random(41);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string file = good;
    if (round % 3 == 0) {
      file.resize(random() % file.size());
    } else {
      file[random() % file.size()] = static_cast<char>(random());
    }
    auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
    if (!made.ok()) {
      ++refused;
      EXPECT_STRNE(made.status().message(), "");
      continue;
    }
    Ids ids;
    if ((*made)->encode("The \xEF\xBC\xA1 mill... \xEF\xAC\x81ne", 0, &ids).ok())
      decode(**made, ids);
  }
  EXPECT_GT(refused, 100);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace gen::tokenizer
