// SPDX-License-Identifier: Apache-2.0
// Llama 3: files of its first weeks have no name of the pre-tokenizer, or a general one.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr const char* kPre = "tokenizer.ggml.pre";

bool is_llama3(const Source& file) {
  constexpr size_t kEndOfTurn = 128009;
  if (file.text("tokenizer.ggml.model") != "gpt2") return false;
  const std::string pre = file.text(kPre);
  if (!pre.empty() && pre != "default") return false;
  const auto tokens = file.metadata.get_strings("tokenizer.ggml.tokens");
  return tokens.ok() && tokens.value().size() > kEndOfTurn &&
         tokens.value()[kEndOfTurn] == "<|eot_id|>";
}

Status adjust(Edit& file) {
  file.set_text(kPre, "llama-bpe");
  return {};
}

}  // namespace

constinit const Family kLlama3 = {
    .name = "llama", .recognise = is_llama3, .adjust = adjust, .is_llama_cpps = true};

}  // namespace gen::gguf::compat
