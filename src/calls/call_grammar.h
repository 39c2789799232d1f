// SPDX-License-Identifier: Apache-2.0
// The grammar of answers with calls of given tools: text and reasoning are free, and from the mark
// that opens a call on only calls can follow that the parser (call_parser.h) reads as calls of one
// of the tools with arguments that are valid under its schema.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "calls/call_format.h"
#include "calls/tool.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace gen::calls {

enum class ToolChoice : uint8_t {
  kAuto,      // text, calls or both
  kRequired,  // at least one call; no text before it
  kNone,      // no call
};

inline grammar::SchemaOptions schemas_of_models() {
  grammar::SchemaOptions options;
  options.style = grammar::JsonStyle::of_models();
  return options;
}

struct CallGrammarOptions {
  ToolChoice choice = ToolChoice::kAuto;
  std::string named = {};     // with kRequired: only this tool
  bool parallel = true;       // more than one call, if the format can
  bool in_reasoning = false;  // the answer begins inside reasoning (the prompt opened it)
  bool may_reason = true;     // it may begin with reasoning; always free
  std::string response = {};  // JSON Schema of the text; empty: any text
  grammar::SchemaOptions schemas = schemas_of_models();
  grammar::GrammarLimits limits = {};
};

struct CallGrammarReport {
  std::vector<std::string> relaxed;  // tool, JSON pointer, and what is not enforced there
};

/// `spec` says which marks are control tokens; those that are none are bytes. kGrammar, naming the
/// tool and a JSON pointer, as Grammar::from_json_schema; kInvalidArgument for a named tool that is
/// not there, for two tools of one name, and for kRequired without tools. A format without marks
/// around its calls (CallFormat::bare) has no text that begins with a brace, nor one with a member
/// "arguments" or "parameters" of an object; text before a call has no brackets, which could hide
/// it. What is relaxed in arguments: syntax/arguments.h.
Result<std::shared_ptr<const grammar::Grammar>> call_grammar(const CallFormat& format,
                                                             std::span<const Tool> tools,
                                                             const tokenizer::VocabSpec& spec,
                                                             const CallGrammarOptions& options,
                                                             CallGrammarReport* report = nullptr);

}  // namespace gen::calls
