// SPDX-License-Identifier: Apache-2.0
// See tokenizer_file.h.
#include "model/gguf/tokenizer_file.h"

#include <utility>

#include "base/mapped_file.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab.h"

namespace gen::gguf {

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer_file(const std::string& path) {
  bool is_gguf = false;
  {
    GEN_ASSIGN(const MappedFile file, MappedFile::open(path));
    is_gguf = begins_as_gguf(file.bytes());
  }
  if (!is_gguf) {
    // Read, not mapped: the checked bytes must be the used ones, even if another process writes to
    // the file meanwhile.
    GEN_ASSIGN(const MappedFile file, MappedFile::open(path, MappedFile::Mode::kRead));
    return tokenizer::load_sentencepiece_model(file.bytes());
  }
  GEN_ASSIGN(const auto gguf, GgufFile::open(path, MappedFile::Mode::kMap));
  GEN_ASSIGN(auto spec, read_vocab(gguf->metadata()));
  return tokenizer::create_tokenizer(std::move(spec));
}

}  // namespace gen::gguf
