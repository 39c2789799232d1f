// SPDX-License-Identifier: Apache-2.0
// The PLaMo 2 kind: the pieces with the best sum of scores, and bytes for a character that is none.
// Unlike SentencePiece's unigram, texts are not normalised, sums are exact, and the longest of
// equals is taken.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kFormat for a vocabulary without tokens of bytes.
Result<std::shared_ptr<const Tokenizer>> create_plamo2_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
