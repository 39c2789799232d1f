// SPDX-License-Identifier: Apache-2.0
// Whether two models speak of the same tokens.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

/// How many tokens a draft model has in common with the one that it drafts for: all of the smaller
/// vocabulary, to which the other one adds nothing but padding (unused tokens, rows without a token).
/// Either tokenizer may be null; the models' sizes must then be the same. kInvalidArgument naming
/// the first token that differs.
Result<int32_t> common_vocabulary(const model::Model& draft,
                                  const tokenizer::Tokenizer* draft_tokenizer,
                                  const model::Model& target,
                                  const tokenizer::Tokenizer* target_tokenizer);

}  // namespace gen::generate
