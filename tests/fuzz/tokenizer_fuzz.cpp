// SPDX-License-Identifier: Apache-2.0
// Random vocabularies with random texts and tokens, and random SentencePiece `.model` files.
// Nothing may crash, trip a sanitizer or print; and what encode, decode and the stream decoder
// promise must hold. The first byte chooses between a SentencePiece vocabulary (or unigram,
// WordPiece, RWKV, PLaMo 2), a byte-level BPE one, a model file, and a model file that is made from
// the rest of the input.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/nfc.h"
#include "tokenizer/sentencepiece_models.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace {

using namespace gen::tokenizer;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  uint32_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string_view take(size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return take(4096); }

 private:
  std::string_view bytes_;
};

int32_t random_id(Input* input, const VocabSpec& spec) {
  const uint32_t choice = input->byte();
  if (choice < 128) return -1;
  if (choice < 250 && !spec.tokens.empty()) {
    return static_cast<int32_t>(input->byte() % spec.tokens.size());
  }
  return static_cast<int32_t>(input->byte() << 24);
}

void add_tokens(Input* input, VocabSpec* spec) {
  const uint32_t count = input->byte() % 48;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t shape = input->byte();
    std::string text(input->take(shape % 7));
    if (shape >= 200 && spec->tokens.size() > 1) {  // two earlier ones together
      text = spec->tokens[input->byte() % spec->tokens.size()];
      text += spec->tokens[spec->tokens.size() - 1 - input->byte() % spec->tokens.size()];
    }
    const uint32_t type = input->byte();
    float score = static_cast<float>(i) * -1.0F;
    if (type >= 250) score = 0.0F / static_cast<float>(255 - type);
    test::add_token(spec, text, static_cast<TokenType>(type < 160 ? 1 : type % 8), score);
  }
}

void set_options(Input* input, VocabSpec* spec) {
  const uint32_t bits = input->byte();
  spec->add_space_prefix = (bits & 1) != 0;
  spec->remove_extra_whitespaces = (bits & 6) == 6;
  spec->escape_whitespaces = (bits & 24) != 24;
  spec->special_strips_right = (bits & 32) != 0;
  if ((bits & 64) != 0) {
    spec->bos = random_id(input, *spec);
    spec->eos = random_id(input, *spec);
    spec->unk = random_id(input, *spec);
  }
}

VocabSpec sentencepiece_vocab(Input* input) {
  VocabSpec spec;
  if (input->byte() % 4 != 0) spec = test::sp_vocab({"_", "a", "b", "_a", "ab"});
  add_tokens(input, &spec);
  set_options(input, &spec);
  if (input->byte() == 1 && !spec.scores.empty()) spec.scores.pop_back();
  // The kinds that take the same tables.
  switch (input->byte() / 32) {
    case 1:
      spec.kind = VocabKind::kUnigram;
      spec.charsmap = input->take(input->byte() * 4);
      break;
    case 2:
    case 3:
      spec.kind = VocabKind::kWordPiece;
      break;
    case 4:
    case 5:
      spec.kind = VocabKind::kRwkv;
      break;
    case 6:
      spec.kind = VocabKind::kPlamo2;
      break;
    default:
      break;
  }
  return spec;
}

VocabSpec bpe_vocab(Input* input) {
  static constexpr const char* kFamilies[] = {
      "gpt-2",       "llama-bpe",    "qwen2",  "falcon",     "tekken",  "default",
      "deepseek-v3", "none",         "jais-2", "cohere2moe", "kimi-k2", "superbpe",
      "afmoe",       "deepseek-llm", "youtu",  "exaone-moe"};
  const uint32_t family = input->byte();
  VocabSpec spec = test::bpe_vocab({"a b", "t h"}, kFamilies[family % 16]);
  if (family >= 192) spec.kind = VocabKind::kTextBpe;
  if (family >= 240) spec.pre = kPreWhitespace;
  if (family >= 128 && family < 160) {
    spec.kind = VocabKind::kHybridDna;
    for (const char* text : {"<dna>", "</dna>", "<oov>", "ACGTAC\xEE\x80\x80"}) {
      test::add_token(&spec, text, TokenType::kNormal);
    }
  }
  add_tokens(input, &spec);
  set_options(input, &spec);
  if (family >= 160 && family < 192) {  // the ids rank then
    spec.merges.clear();
    return spec;
  }
  const uint32_t merges = input->byte() % 32;
  for (uint32_t i = 0; i < merges; ++i) {
    std::string left = spec.tokens[input->byte() % spec.tokens.size()];
    std::string right = spec.tokens[spec.tokens.size() - 1 - input->byte() % spec.tokens.size()];
    const uint32_t shape = input->byte();
    if (shape < 200) test::add_token(&spec, left + right, TokenType::kNormal);
    spec.merges.push_back(shape == 255 ? left : left + " " + right);
  }
  return spec;
}

// Sound on the outside: pieces and options as they come, and a map of characters of one unit or of
// what the input has.
std::string model_file(Input* input) {
  VocabSpec spec = test::sp_vocab({"_", "a", "b", "_a", "ab"});
  const uint32_t bits = input->byte();
  if ((bits & 1) != 0) spec = VocabSpec();
  add_tokens(input, &spec);
  SpModel model;
  model.pieces = spec.tokens;
  model.scores = spec.scores;
  model.types = spec.types;
  model.model_type = (bits & 2) != 0 ? SpModelType::kBpe : SpModelType::kUnigram;
  model.add_dummy_prefix = (bits & 4) != 0;
  model.remove_extra_whitespaces = (bits & 8) != 0;
  model.escape_whitespaces = (bits & 16) != 0;
  if ((bits & 32) != 0) model.charsmap = input->take(input->byte() * 16);
  return test::serialize_sp_model(model);
}

// For tokens that can be a text's: only plain ones, so that decoding hides and strips nothing.
bool is_lossless(const VocabSpec& spec) {
  if (spec.kind != VocabKind::kByteBpe) return false;
  for (const TokenType type : spec.types) {
    if (type != TokenType::kNormal) return false;
  }
  return true;
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = {1};
  for (const auto& [flags, previous] :
       {std::pair{0U, kTextStart}, std::pair{0U, kInText},
        std::pair{static_cast<uint32_t>(kAddBos | kParseSpecial), kTextStart}}) {
    ids.assign(1, 1);
    const bool encoded = tokenizer.encode(text, flags, &ids, previous).ok();
    require(ids.front() == 1);
    require(encoded || ids.size() == 1);
    require(!encoded || gen::utf8_valid(text));
    for (const int32_t id : ids) require(id >= 0 && (id == 1 || id < tokenizer.vocab_size()));
    std::string back;
    ids.erase(ids.begin());
    require(tokenizer.decode(ids, true, &back).ok());
    if (encoded && flags == 0 && is_lossless(tokenizer.spec())) {
      std::string formed;  // only qwen2 of the families here forms texts
      require(back == (tokenizer.spec().pre == "qwen2" ? to_nfc(text, &formed) : text));
      if (tokenizer.spec().pre == "qwen2") require(to_nfc(back, &formed) == back);
    }
  }
  const TextSegment segments[] = {{text.substr(0, text.size() / 2), true},
                                  {text.substr(text.size() / 2), false}};
  (void)tokenizer.encode_segments(segments, kAddBos, kTextStart, &ids).ok();

  // the text's bytes as tokens
  StreamDecoder decoder(tokenizer, -1, text.size() % 2 == 0);
  std::string streamed;
  ids.clear();
  for (const char c : text) {
    ids.push_back(static_cast<int32_t>(static_cast<unsigned char>(c)) % tokenizer.vocab_size());
    std::string piece;
    require(decoder.feed(ids.back(), &piece).ok());
    require(gen::utf8_valid(piece) && decoder.held() <= 3);
    streamed += piece;
  }
  decoder.flush(&streamed);
  std::string whole;
  require(tokenizer.decode(ids, text.size() % 2 == 0, &whole).ok());
  require(whole == streamed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input({reinterpret_cast<const char*>(data), size});
  const uint32_t kind = input.byte() % 4;
  if (kind == 2) {
    const auto file = std::span(data, size).subspan(size > 0 ? 1 : 0);
    auto made = load_sentencepiece_model(std::as_bytes(file));
    if (made.ok()) use(**made, "The \xEF\xBC\xA1 mill...  a\n<s>\xF0\x9F\xA6\x99 aaaab ab");
    return 0;
  }
  if (kind == 3) {
    const std::string file = model_file(&input);
    auto made = load_sentencepiece_model(std::as_bytes(std::span(file)));
    if (made.ok()) use(**made, input.rest());
    return 0;
  }
  auto made = create_tokenizer(kind == 0 ? sentencepiece_vocab(&input) : bpe_vocab(&input));
  if (made.ok()) use(**made, input.rest());
  return 0;
}
