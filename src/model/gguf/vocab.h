// SPDX-License-Identifier: Apache-2.0
// Reads the vocabulary of a GGUF file (keys tokenizer.*) for the tokenizer room. Only types and
// lengths are checked here; create_tokenizer checks the entries.
#pragma once

#include "base/status.h"
#include "model/gguf/metadata.h"
#include "tokenizer/vocab.h"

namespace gen::gguf {

/// Errors: kFormat naming the key that is missing, of a wrong type or of a length that differs from
/// the tokens'; kUnsupported naming a tokenizer.ggml.model other than "llama", "gpt2" and "gemma4".
Result<tokenizer::VocabSpec> read_vocab(const Metadata& metadata);

}  // namespace gen::gguf
