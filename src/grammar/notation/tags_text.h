// SPDX-License-Identifier: Apache-2.0
// Structural tags as a text: a JSON object
//
//   {"tags": [{"begin": "<f>", "regex": "[0-9]+", "end": "</f>"}, …],
//    "triggers": ["<f"], "at_least_one": false, "stop_after_first": false, "free_text": true}
//
// of which "tags" alone must be there. A tag has a begin, "begin" or "begin_token"; a content,
// "gbnf", "regex", "json_schema" (a schema, not its text) or "any_json": true; an end, "end" and
// "end_token", both of them, one or none.
// Tokens are numbers (ids) or strings (their text).
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/schema/schema.h"
#include "grammar/notation/tags.h"

namespace gen::grammar {

/// Adds the contents of the tags to `to`; patterns have the fuel that `schemas` has for automata.
/// Schemas whose text no other kind of tag may read are watched (TagOptions::watched).
/// kGrammar with line and column. What is no JSON, and keys that have no meaning here, are
/// failures. Cost: linear, and that of the contents; nothing recurses.
Result<std::vector<Tag>> parse_tags(std::string_view text, Expressions& to, TagOptions* options,
                                    const SchemaOptions& schemas = {},
                                    SchemaReport* report = nullptr);

}  // namespace gen::grammar
