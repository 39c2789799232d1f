// SPDX-License-Identifier: Apache-2.0
// The WordPiece kind (BERT): words without accents in lower case, each split into the longest
// pieces from its front. A piece that begins a word begins with U+2581.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. Decoding gives a text with single spaces between words and
/// signs, as these vocabularies do not say what was between them.
Result<std::shared_ptr<const Tokenizer>> create_wordpiece_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
