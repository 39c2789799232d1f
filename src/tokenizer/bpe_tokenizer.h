// SPDX-License-Identifier: Apache-2.0
// The byte-level BPE kind (GPT-2, Llama 3, Qwen, StarCoder, Falcon): words by regular expressions
// (pretokenizer.h), merged by rank (bpe_merges.h).
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kFormat for a merge that is not two tokens making a third,
/// kUnsupported for an unknown pre-tokenizer.
Result<std::shared_ptr<const Tokenizer>> create_bpe_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
