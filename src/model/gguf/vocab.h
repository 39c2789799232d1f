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

/// Whether tokenizer.ggml.model says that there is none.
bool names_no_tokenizer(std::string_view kind) noexcept;

/// The error of a file without a tokenizer where one is needed: kFormat, which tells the key.
Status no_tokenizer(const Metadata& metadata);

/// kInvalidArgument: a name is given for a vocabulary of this kind, which has no pre-tokenizers.
Status no_pre_tokenizer(std::string_view pre_tokenizer, std::string_view kind) noexcept;

}  // namespace gen::gguf
