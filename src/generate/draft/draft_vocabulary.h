// SPDX-License-Identifier: Apache-2.0
// Whether two models share a vocabulary.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

/// Number of tokens that a draft model shares with its target: the size of the smaller vocabulary,
/// to which the larger one may add only padding (unused tokens or rows without a token). Either
/// tokenizer may be null; then the sizes must be equal. Otherwise kInvalidArgument, naming the
/// first token that differs.
Result<int32_t> common_vocabulary(const model::Model& draft,
                                  const tokenizer::Tokenizer* draft_tokenizer,
                                  const model::Model& target,
                                  const tokenizer::Tokenizer* target_tokenizer);

}  // namespace gen::generate
