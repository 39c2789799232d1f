// SPDX-License-Identifier: Apache-2.0
// See tokenizer_file.h.
#include "model/gguf/tokenizer_file.h"

#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "model/gguf/compat/translate.h"
#include "model/gguf/part.h"
#include "model/gguf/vocab.h"

namespace gen::gguf {

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer_file(
    const std::string& path, std::string_view pre_tokenizer) {
  std::shared_ptr<const Metadata> metadata;
  {
    GEN_ASSIGN(const MappedFile file, MappedFile::open(path));
    if (begins_as_gguf(file.bytes())) {
      GEN_ASSIGN(metadata, parse_metadata(file.bytes()));
    }
  }
  if (metadata == nullptr) {
    GEN_TRY(check_has_pre_tokenizer(false, pre_tokenizer));
    // Read, not mapped: the checked bytes must be the used ones, even if another process writes to
    // the file meanwhile.
    GEN_ASSIGN(const MappedFile file, MappedFile::open(path, MappedFile::Mode::kRead));
    return tokenizer::load_sentencepiece_model(file.bytes());
  }
  std::vector<TensorInfo> none;
  GEN_ASSIGN(const compat::Translated translated, compat::translate(std::move(metadata), none));
  GEN_ASSIGN(auto spec, read_vocab(*translated.metadata, pre_tokenizer));
  return tokenizer::create_tokenizer(std::move(spec));
}

}  // namespace gen::gguf
