// SPDX-License-Identifier: Apache-2.0
// Structural tags as a text: a JSON object
//
//   {"tags": [{"begin": "<f>", "regex": "[0-9]+", "end": "</f>"}, …],
//    "triggers": ["<f"], "at_least_one": false, "stop_after_first": false, "free_text": true}
//
// where only "tags" is required. A tag has a begin: "begin" or "begin_token"; a content: "gbnf",
// "regex", "json_schema" (a schema, not its text) or "any_json": true; and an end: "end" and
// "end_token", both, one or none. Tokens are numbers (ids) or strings (their text).
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/schema/schema.h"
#include "grammar/notation/tags.h"

namespace gen::grammar {

/// Adds the contents of the tags to `to`; patterns have the fuel for automata in `schemas`. Schemas
/// whose text no other kind of tag may match are watched (TagOptions::watched). kGrammar with line
/// and column; invalid JSON and unknown keys are errors. Cost: linear, plus that of the contents;
/// no recursion.
Result<std::vector<Tag>> parse_tags(std::string_view text, Expressions& to, TagOptions* options,
                                    const SchemaOptions& schemas = {},
                                    SchemaReport* report = nullptr);

}  // namespace gen::grammar
