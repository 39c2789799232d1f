// SPDX-License-Identifier: Apache-2.0
// The RWKV kind: the longest token from the front of what is left. Tokens are bytes, written in the
// vocabulary with escapes such as \\n and \\xE4.
#pragma once

#include <memory>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// `spec` has passed check_and_complete. kFormat naming a token whose escapes are broken.
Result<std::shared_ptr<const Tokenizer>> create_rwkv_tokenizer(VocabSpec spec);

}  // namespace gen::tokenizer
