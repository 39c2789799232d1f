// SPDX-License-Identifier: Apache-2.0
// A tokenizer from a file of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::gguf {

/// The tokenizer of a GGUF file, or of the model that it is a part of (then the first part has it),
/// whose architecture and tensors may be unknown, damaged or missing, or of a SentencePiece model.
/// `pre_tokenizer`: see read_vocab. Errors: kIo, and those of read_vocab and the tokenizers.
Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer_file(
    const std::string& path, std::string_view pre_tokenizer = {});

}  // namespace gen::gguf
