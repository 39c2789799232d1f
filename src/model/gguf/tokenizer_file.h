// SPDX-License-Identifier: Apache-2.0
// A tokenizer from a file of its own.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::gguf {

/// Of a GGUF file, whose tensors stay unread, or of a SentencePiece model. Errors: kIo, kFormat and
/// kUnsupported as read_vocab and the tokenizers say.
Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer_file(const std::string& path);

}  // namespace gen::gguf
