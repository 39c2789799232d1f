// SPDX-License-Identifier: Apache-2.0
// The BPE kind over characters (Gemma 4): spaces become U+2581, and the characters of a line are
// merged by rank (bpe_merges.h). Characters without a token are bytes, or the unknown token. With
// the pre-tokenizer "whitespace" white space only ends words and is dropped.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kFormat for a merge that is not two tokens making a third.
Result<std::shared_ptr<const Tokenizer>> create_text_bpe_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
