// SPDX-License-Identifier: Apache-2.0
// Structural tags: free text in which triggers begin constrained parts, as tool calls do, or an
// answer behind reasoning.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// A constrained part: its begin, what `body` matches, its end. The begin is a text or a token, not
/// both; the end may be either, both (the text first) or nothing.
struct Tag {
  std::string begin;
  std::optional<TokenTerm> begin_token;
  ExprId body = Expressions::kEmpty;
  std::string end;
  std::optional<TokenTerm> end_token;
};

struct TagOptions {
  /// Texts from which on only tags that begin with one of them can follow. None: the begins.
  std::vector<std::string> triggers;
  bool at_least_one = false;      // the text may not end before a tag has
  bool stop_after_first = false;  // the text ends behind the first tag
  bool free_text = true;          // else there is nothing but tags
  bool watched = false;           // bodies have bytes that no text has (json_text.h)
};

/// Free text is any bytes, or of watched ones those below kFirstSignal, in which no trigger occurs;
/// tokens without bytes are no free text. A trigger that occurs is a trigger: whatever follows must
/// be one of its tags. kGrammar, naming them, if there are no tags, one has no begin or no trigger,
/// a trigger holds another, or there are more than 1024 of either or than 16 KiB of triggers.
Result<ExprId> tags_expression(std::span<const Tag> tags, const TagOptions& options,
                               Expressions& to);

}  // namespace gen::grammar
