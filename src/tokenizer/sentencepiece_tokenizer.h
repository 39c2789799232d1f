// SPDX-License-Identifier: Apache-2.0
// The SentencePiece kind. Encoding is libsentencepiece's; decoding is ours, because text must come
// out token by token with every byte as it is.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kTokenizer if libsentencepiece refuses the model.
Result<std::shared_ptr<const Tokenizer>> create_sentencepiece_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
