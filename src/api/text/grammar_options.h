// SPDX-License-Identifier: Apache-2.0
// gen_grammar_options, and the conversions for functions that make grammars.
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
  bool any_style = false;  // JSON in any spelling
  int32_t max_space = -1;  // -1: as the style says
  int32_t max_digits = 0;  // 0: as the style says
  Order order = Order::kOfStyle;
  bool forced_by_tokenizer = false;     // gen_grammar_matcher_forced spells with the tokenizer
  gen::grammar::SchemaOptions schemas;  // other options of schemas
  std::map<std::string, std::string> documents;   // by URI
  std::shared_ptr<const gen::CancelFlag> cancel;  // may be null
};

namespace gen::api {

/// NULL means the defaults, here and below.
grammar::JsonStyle json_style_of(const gen_grammar_options* options);
grammar::SchemaOptions schema_options_of(const gen_grammar_options* options);
grammar::GrammarLimits limits_of(const gen_grammar_options* options);

}  // namespace gen::api
