// SPDX-License-Identifier: Apache-2.0
// Reads the vocabulary of a GGUF file (keys tokenizer.*) for the tokenizer room. Only types and
// lengths are checked here; create_tokenizer checks the entries.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model/gguf/metadata.h"
#include "tokenizer/vocab.h"

namespace gen::gguf {

/// Errors: kFormat naming the key that is missing, of a wrong type or of a length that differs from
/// the tokens'; kUnsupported naming a tokenizer.ggml.model that is not known. What a file leaves
/// out and the family's default replaces is logged where texts depend on it.
/// `pre_tokenizer` replaces tokenizer.ggml.pre, if it is not empty; kInvalidArgument where a kind
/// of vocabulary has none.
Result<tokenizer::VocabSpec> read_vocab(const Metadata& metadata,
                                        std::string_view pre_tokenizer = {});

/// kInvalidArgument if a name is given for a vocabulary whose kind has no pre-tokenizers.
Status check_has_pre_tokenizer(bool has, std::string_view pre_tokenizer);

}  // namespace gen::gguf
