// SPDX-License-Identifier: Apache-2.0
// The SentencePiece and unigram kinds: a text is normalised (sentencepiece_normalizer.h), then
// split into pieces (sentencepiece_encoder.h), like in the library of that name.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kFormat for a damaged charsmap.
Result<std::shared_ptr<const Tokenizer>> create_sentencepiece_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
