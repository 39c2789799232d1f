// SPDX-License-Identifier: Apache-2.0
// Structural tags: free text in which triggers begin constrained sections, such as tool calls, or
// an answer after reasoning.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// A constrained section: its begin, the content matched by `body`, its end. The begin is either a
/// text or a token; the end is either, both (the text first) or empty.
struct Tag {
  std::string begin;
  std::optional<TokenTerm> begin_token;
  ExprId body = Expressions::kEmpty;
  std::string end;
  std::optional<TokenTerm> end_token;
};

struct TagOptions {
  /// Texts after which only tags that begin with one of them can follow. Empty: the begins.
  std::vector<std::string> triggers;
  bool at_least_one = false;      // the text may not end before a tag
  bool stop_after_first = false;  // the text ends after the first tag
  bool free_text = true;          // otherwise the text consists of tags only
  bool watched = false;           // bodies have signal bytes, which no text has (json_text.h)
};

/// Free text is any bytes (if watched, those below kFirstSignal) without a trigger; tokens without
/// bytes are not free text. Every occurrence of a trigger counts: what follows must be one of its
/// tags. kGrammar, naming the culprit, if there are no tags, if a tag has no begin or no trigger,
/// if a trigger contains another one, or if there are more than 1024 of either or more than 16 KiB
/// of triggers.
Result<ExprId> tags_expression(std::span<const Tag> tags, const TagOptions& options,
                               Expressions& to);

}  // namespace gen::grammar
