// SPDX-License-Identifier: Apache-2.0
// The command-line options that name a grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "handles.h"

namespace cli {

using Grammar = Handle<gen_grammar, gen_grammar_free>;
using GrammarOptions = Handle<gen_grammar_options, gen_grammar_options_free>;
using GrammarMatcher = Handle<gen_grammar_matcher, gen_grammar_matcher_free>;

struct GrammarChoice {
  std::optional<std::string> gbnf;    // a file
  std::optional<std::string> lark;    // a file
  std::optional<std::string> regex;   // the pattern itself
  std::optional<std::string> tags;    // a file
  std::optional<std::string> schema;  // a file
  bool any_json = false;
  std::vector<std::string> documents;  // URI=FILE, for the schema's references
  std::vector<std::string> settings;   // KEY=VALUE, of gen_grammar_options_set
  bool any_style = false;              // of JSON, unless a setting overrides it

  [[nodiscard]] bool given() const { return gbnf || lark || regex || tags || schema || any_json; }
};

/// At most one of them may be given.
void add_grammar_options(CLI::App& command, GrammarChoice& choice);
/// Adds the files that the options name.
void add_grammar_files(const GrammarChoice& choice, std::vector<std::string>* files);
/// Null if none was given. An error in the grammar is reported as the option's.
Grammar make_grammar(const GrammarChoice& choice);

/// The exit status for a text that a limit cut off before it was complete under its grammar.
constexpr int kCutOff = 3;
/// One line that says that the text was cut off so, and why; empty if it was not.
std::string cut_off(const GrammarChoice& choice, const gen_model* model, const gen_result* result);

}  // namespace cli
