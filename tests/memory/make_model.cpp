// SPDX-License-Identifier: Apache-2.0
// Writes a model for the memory sweep: make_sweep_model FILE bpe|sentencepiece. Random weights, two
// layers, and a vocabulary with a chat template, so that loading it takes as many kinds of paths as
// a real one, in a millisecond. Beside it FILE.eagle3, FILE.eagle and FILE.mlp, heads that draft
// for it, and FILE.gemma4, a model of that family with the same vocabulary, with FILE.assistant.
#include <string>
#include <string_view>
#include <utility>

#include "support/eagle_file.h"
#include "support/tiny_assistant.h"
#include "support/tiny_model.h"
#include "tokenizer/vocabularies.h"

namespace {

using gen::tokenizer::TokenType;
using gen::tokenizer::VocabSpec;
using gen::tokenizer::test::add_token;

VocabSpec byte_level() {
  VocabSpec vocab =
      gen::tokenizer::test::bpe_vocab({"t h", "th e", "Ġ t", "Ġ a", "i n", "e r", "o n", "Ġt h",
                                       "Ġth e", "Ġ w", "Ġ o", "in g", "Ġ d"},
                                      "llama-bpe");
  vocab.bos = add_token(&vocab, "<|begin|>", TokenType::kControl);
  vocab.eos = add_token(&vocab, "<|im_end|>", TokenType::kControl);
  return vocab;
}

VocabSpec sentencepiece() {
  VocabSpec vocab =
      gen::tokenizer::test::sp_vocab({"_t", "he", "_the", "_a", "in", "er", "on", "_w", "_o", "ing",
                                      "th", "_", "e", "t", "a", "o", "n", "i", "h"});
  add_token(&vocab, "<|begin|>", TokenType::kControl);
  return vocab;
}

bool write_heads(const std::string& path) {
  using gen::test::EagleKind;
  const std::pair<EagleKind, const char*> kinds[] = {
      {EagleKind::kEagle3, ".eagle3"}, {EagleKind::kEagle1, ".eagle"}, {EagleKind::kMlp, ".mlp"}};
  for (const auto& [kind, ending] : kinds) {
    gen::test::EagleSpec spec;
    spec.kind = kind;
    if (kind == EagleKind::kEagle3) spec.tokens = {4, 65, 66, 67, 97, 98, 99, 32, 7};
    if (!gen::test::write_file(path + ending, gen::test::EagleFile(spec).bytes())) return false;
  }
  return true;
}

/// The model's file. `bytes`: the vocabulary is of bytes.
std::vector<std::byte> with_vocabulary(gen::test::TinyModel& model, const VocabSpec& vocab,
                                       bool bytes) {
  std::vector<int32_t> types;
  for (const TokenType type : vocab.types) types.push_back(static_cast<int32_t>(type));
  model.writer()
      .set_string("general.name", "sweep")
      .set_string("tokenizer.ggml.model", bytes ? "gpt2" : "llama")
      .set_strings("tokenizer.ggml.tokens", vocab.tokens)
      .set_array("tokenizer.ggml.scores", vocab.scores)
      .set_array("tokenizer.ggml.token_type", types)
      .set<uint32_t>("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(vocab.bos))
      .set<uint32_t>("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(vocab.eos))
      .set_string("tokenizer.chat_template",
                  "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}");
  if (bytes) {
    model.writer()
        .set_string("tokenizer.ggml.pre", vocab.pre)
        .set_strings("tokenizer.ggml.merges", vocab.merges);
  }
  return model.bytes();
}

bool write_gemma(const std::string& path, gen::test::TinyModelSpec spec, const VocabSpec& vocab,
                 bool bytes) {
  spec.architecture = "gemma4";
  spec.window = 7;
  spec.local = {1, 0};
  gen::test::TinyModel model(spec);
  const gen::test::TinyAssistant assistant(model, {.local = {1, 0}});
  return gen::test::write_file(path + ".gemma4", with_vocabulary(model, vocab, bytes)) &&
         gen::test::write_file(path + ".assistant", assistant.bytes());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool bytes = std::string_view(argv[2]) == "bpe";
  VocabSpec vocab = bytes ? byte_level() : sentencepiece();
  for (const char* text : {"<|im_start|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"}) {
    add_token(&vocab, text, TokenType::kControl);
  }

  gen::test::TinyModelSpec spec;
  spec.type = gen::DType::kQ8_0;
  spec.vocab = static_cast<int32_t>(vocab.tokens.size());
  spec.context = 96;
  gen::test::TinyModel model(spec);
  const std::string path = argv[1];
  const bool written = gen::test::write_file(path, with_vocabulary(model, vocab, bytes)) &&
                       write_heads(path) && write_gemma(path, spec, vocab, bytes);
  return written ? 0 : 1;
}
