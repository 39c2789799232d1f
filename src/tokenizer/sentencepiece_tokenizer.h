// SPDX-License-Identifier: Apache-2.0
// The SentencePiece kind: a text is normalized (sentencepiece_normalizer.h), then made of pieces
// (sentencepiece_encoder.h), as the library of that name does it.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete.
Result<std::shared_ptr<const Tokenizer>> create_sentencepiece_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
