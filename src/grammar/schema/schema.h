// SPDX-License-Identifier: Apache-2.0
// JSON Schema, drafts 4 to 2020-12, as expressions: the language is the texts of all valid values.
// Every keyword is exact, or refused by name and JSON pointer.
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
#include "grammar/schema/value_form.h"

namespace gen::grammar {

struct SchemaOptions {
  bool assert_formats = true;
  bool one_of_as_any_of = false;
  /// Ignored keywords (see is_asking_keyword).
  std::vector<std::string> ignored;
  JsonStyle style;
  DfaFuel automata;
  uint64_t work = 200'000;  // alternatives examined
  /// A length limit takes a state per character count. If these would be more, characters are
  /// counted while a text is read.
  size_t counted_states = 2048;
  /// Whether texts are also checked beside the grammar (JsonRules), which arrays may rely on.
  bool watched = true;
  std::string unwatched = {};  // the reason why not, for messages
  /// The texts are also read for another schema, which may watch arrays.
  bool among_others = false;
  /// Loads documents that references point to; without it, external references are refused.
  SchemaResolver resolver;
  bool space_around = true;  // white space around the text, as the style has it
  /// The form of values that are not JSON. In it names that no keyword lists may come twice, and
  /// uniqueItems and the format regex have no effect where that takes more than an automaton;
  /// SchemaReport::relaxed says where. It must outlive the call.
  const ValueForm* form = nullptr;
};

/// Results of compiling a schema besides the expression.
struct SchemaReport {
  std::vector<std::string> unknown_formats;
  std::vector<std::string> relaxed;  // JSON pointers and what was done there
  bool items = false;                // JsonRules::items must be enforced
  bool any_order = false;            // for some object, although the style prefers an order
};

/// kGrammar, with the pointer of a schema that is invalid, refused, or without valid values.
Result<ExprId> schema_expression(std::string_view text, const SchemaOptions& options,
                                 Expressions& to, SchemaReport* report = nullptr);

}  // namespace gen::grammar
