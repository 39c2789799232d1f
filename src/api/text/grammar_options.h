// SPDX-License-Identifier: Apache-2.0
// gen_grammar_options, and what the functions that make grammars take from it.
#pragma once

#include <generate/grammar.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/boundary/option_table.h"
#include "base/cancel.h"
#include "grammar/grammar.h"

struct gen_grammar_options {
  gen::grammar::RegexMatch match = gen::grammar::RegexMatch::kWhole;
  int32_t max_text = 1;
  int32_t max_edges = 4 << 20;
  int32_t max_states = 50'000;
  int32_t max_items = 65'536;
  int32_t max_work = 1 << 24;
  int32_t cache_memory = 64;
  enum class Order : uint8_t { kOfStyle, kAny, kDefinition };
  bool any_style = false;  // of JSON: all spellings
  int32_t max_space = -1;  // as the style has it
  int32_t max_digits = 0;  // as the style has it
  Order order = Order::kOfStyle;
  bool forced_by_tokenizer = false;               // what gen_grammar_matcher_forced gives
  gen::grammar::SchemaOptions schemas;            // without what is above and below
  std::map<std::string, std::string> documents;   // by URI
  std::shared_ptr<const gen::CancelFlag> cancel;  // may be null
};

namespace gen::api {

/// Of NULL: the defaults, here and below.
grammar::JsonStyle json_style_of(const gen_grammar_options* options);
grammar::SchemaOptions schema_options_of(const gen_grammar_options* options);
grammar::GrammarLimits limits_of(const gen_grammar_options* options);

}  // namespace gen::api
