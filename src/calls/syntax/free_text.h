// SPDX-License-Identifier: Apache-2.0
// Text between the marks of an answer.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "calls/syntax/marks.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::calls {

/// A mark in free text.
struct Way {
  std::string mark;            // not empty, without white space at its ends
  grammar::ExprId behind = 0;  // what must follow it; kNever: the mark may not occur
  bool ends = false;           // free text ends behind that; else it goes on
};

/// Any bytes that a text may have, but control tokens only where they are of a mark. Behind a mark,
/// be it written in bytes or as tokens, only what it leads to can follow; a mark of control tokens
/// cannot be written in bytes. `may_end`: the text may end without a way that ends it.
grammar::ExprId free_text(const MarkWriter& marks, std::span<const Way> ways, bool may_end);

/// Strings in which none of the marks occurs, nor would begin to occur if one of them followed.
Result<grammar::Dfa> strings_without(std::span<const std::string> marks,
                                     const grammar::DfaFuel& fuel);
/// The strings that match the pattern as a whole.
Result<grammar::Dfa> strings_like(std::string_view pattern, const grammar::DfaFuel& fuel);
/// The strings as they are, those of at most `most` characters.
grammar::ExprId raw_text(grammar::Expressions& to, const grammar::Dfa& strings, uint32_t most);

}  // namespace gen::calls
