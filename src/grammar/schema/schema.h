// SPDX-License-Identifier: Apache-2.0
// JSON Schema, drafts 4 to 2020-12, as expressions: the texts are those of the values that are
// valid. Every keyword is exact or refused by name and JSON pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"
#include "grammar/json/json_style.h"
#include "grammar/schema/document.h"

namespace gen::grammar {

struct SchemaOptions {
  bool assert_formats = true;
  bool one_of_as_any_of = false;
  /// Keywords that are not looked at (see is_asking_keyword).
  std::vector<std::string> ignored;
  JsonStyle style;
  DfaFuel automata;
  uint64_t work = 200'000;  // alternatives looked at
  /// A limit of length takes a state for each count of characters. Where these would be more,
  /// characters are counted while a text is read.
  size_t counted_states = 2048;
  /// Whether the texts can be read beside the grammar (JsonRules): arrays may rely on it.
  bool watched = true;
  std::string unwatched = {};  // why not, for messages
  /// They are also read for another schema, which may have arrays watched.
  bool among_others = false;
  /// Documents that references lead to; without one, references out of the schema are refused.
  SchemaResolver resolver;
};

/// What a schema asks for that its texts do not show.
struct SchemaReport {
  std::vector<std::string> unknown_formats;
  std::vector<std::string> relaxed;  // a JSON pointer and what was done there
  bool items = false;                // JsonRules::items must be kept
  bool any_order = false;            // of some object, though the style prefers one
};

/// kGrammar, with the pointer of what is wrong, refused, or can have no value.
Result<ExprId> schema_expression(std::string_view text, const SchemaOptions& options,
                                 Expressions& to, SchemaReport* report = nullptr);

}  // namespace gen::grammar
