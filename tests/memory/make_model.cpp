// SPDX-License-Identifier: Apache-2.0
// Writes a model for the memory sweep: make_sweep_model FILE. Random weights, two layers, and a byte-level BPE
// vocabulary with a regular expression and a chat template, so that loading it takes as many kinds of paths as a
// real one, in a millisecond.
#include <cstdio>

#include "support/tiny_model.h"
#include "tokenizer/vocabularies.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using gen::tokenizer::TokenType;
  auto vocab = gen::tokenizer::test::bpe_vocab(
      {"t h", "th e", "Ġ t", "Ġ a", "i n", "e r", "o n", "Ġt h", "Ġth e", "Ġ w", "Ġ o", "in g", "Ġ d"}, "llama-bpe");
  using gen::tokenizer::test::add_token;
  const int32_t bos = add_token(&vocab, "<|begin|>", TokenType::kControl);
  const int32_t eos = add_token(&vocab, "<|im_end|>", TokenType::kControl);
  add_token(&vocab, "<|im_start|>", TokenType::kControl);

  gen::test::TinyModelSpec spec;
  spec.type = gen::DType::kQ8_0;
  spec.vocab = static_cast<int32_t>(vocab.tokens.size());
  spec.context = 96;
  spec.hidden = 64;
  gen::test::TinyModel model(spec);
  std::vector<int32_t> types;
  for (const TokenType type : vocab.types) types.push_back(static_cast<int32_t>(type));
  model.writer()
      .set_string("general.name", "sweep")
      .set_string("tokenizer.ggml.model", "gpt2")
      .set_string("tokenizer.ggml.pre", vocab.pre)
      .set_strings("tokenizer.ggml.tokens", vocab.tokens)
      .set_strings("tokenizer.ggml.merges", vocab.merges)
      .set_array("tokenizer.ggml.token_type", types)
      .set<uint32_t>("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos))
      .set<uint32_t>("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos))
      .set_string("tokenizer.chat_template", "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}");
  return gen::test::write_file(argv[1], model.bytes()) ? 0 : 1;
}
