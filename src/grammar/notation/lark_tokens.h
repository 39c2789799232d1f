// SPDX-License-Identifier: Apache-2.0
// Tokens of the vocabulary in Lark's notation.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/expression/expression.h"
#include "grammar/notation/lark_reader.h"

namespace gen::grammar {

/// <name>, <[5]>, <[1-5,7]>, <[^1-5]>, <[*]>. kGrammar with line and column.
Result<TokenTerm> lark_token(std::string_view text, const LarkPlace& place);

}  // namespace gen::grammar
