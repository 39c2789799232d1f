// SPDX-License-Identifier: Apache-2.0
// See grammar_options.h.
#include "grammar_options.h"

#include <initializer_list>
#include <utility>

#include "text_file.h"

namespace cli {

void add_grammar_options(CLI::App& command, GrammarChoice& choice) {
  CLI::Option* const gbnf = command
                                .add_option("--grammar,--gbnf", choice.gbnf,
                                            "file with a GBNF grammar that texts must follow")
                                ->type_name("FILE");
  CLI::Option* const lark =
      command
          .add_option("--lark", choice.lark,
                      "file with a Lark grammar, in llguidance's dialect, that texts must follow")
          ->type_name("FILE");
  CLI::Option* const regex =
      command
          .add_option("--regex", choice.regex,
                      "regular expression (as in JavaScript) that texts must match from end to end")
          ->type_name("PATTERN");
  CLI::Option* const json =
      command.add_flag("--any-json", choice.any_json, "texts must be JSON values");
  CLI::Option* const tags =
      command
          .add_option("--tags", choice.tags,
                      "file with structural tags in JSON, which constrain sections of free text")
          ->type_name("FILE");
  CLI::Option* const schema = command
                                  .add_option("--json-schema,--schema", choice.schema,
                                              "file with a JSON Schema that texts must satisfy")
                                  ->type_name("FILE");
  command
      .add_option("--resolve", choice.documents,
                  "URI=FILE: the schema for references to this URI; may be repeated")
      ->type_name("URI=FILE");
  command
      .add_option("--grammar-set", choice.settings,
                  "KEY=VALUE: an option of grammars, as 'generate help grammar' lists them "
                  "(json_style=any, json_one_of=any_of, json_ignore=format,pattern); may be "
                  "repeated")
      ->type_name("KEY=VALUE");
  const std::initializer_list<CLI::Option*> all = {gbnf, lark, regex, json, tags, schema};
  for (CLI::Option* one : all) {
    for (CLI::Option* other : all) {
      if (one != other) one->excludes(other);
    }
  }
}

namespace {

// Splits "a=b"; the name has no '=', but a URI may have some: the last one counts.
std::pair<std::string, std::string> parts_of(const std::string& option, const std::string& text,
                                             bool last) {
  const size_t at = last ? text.rfind('=') : text.find('=');
  if (at == std::string::npos || at == 0) {
    throw Failure(option + ": " + text + " has no '='", 2, GEN_ERROR_INVALID_ARGUMENT);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

GrammarOptions options_of(const GrammarChoice& choice) {
  GrammarOptions options = make<GrammarOptions>(gen_grammar_options_new);
  gen_error error;
  if (choice.any_style) {
    check(gen_grammar_options_set(options.get(), "json_style", "any", &error), error);
  }
  for (const std::string& setting : choice.settings) {
    const auto [key, value] = parts_of("--grammar-set", setting, false);
    check_option("--grammar-set",
                 gen_grammar_options_set(options.get(), key.c_str(), value.c_str(), &error), error);
  }
  for (const std::string& document : choice.documents) {
    const auto [uri, file] = parts_of("--resolve", document, true);
    const std::string text = text_of_file(file);
    check_option("--resolve",
                 gen_grammar_options_add_schema(options.get(), uri.c_str(), text.data(),
                                                text.size(), &error),
                 error);
  }
  return options;
}

}  // namespace

void add_grammar_files(const GrammarChoice& choice, std::vector<std::string>* files) {
  for (const auto& file : {choice.gbnf, choice.lark, choice.tags, choice.schema}) {
    if (file) files->push_back(*file);
  }
  for (const std::string& document : choice.documents) {
    files->push_back(parts_of("--resolve", document, true).second);
  }
}

Grammar make_grammar(const GrammarChoice& choice) {
  gen_error error;
  gen_grammar* made = nullptr;
  const GrammarOptions options = options_of(choice);
  if (!choice.given() && !(choice.settings.empty() && choice.documents.empty())) {
    const char* const option = choice.settings.empty() ? "--resolve" : "--grammar-set";
    throw Failure(std::string(option) + ": no grammar is given", 2, GEN_ERROR_INVALID_ARGUMENT);
  }
  const std::pair<const std::optional<std::string>&, decltype(&gen_grammar_from_gbnf)> files[] = {
      {choice.gbnf, gen_grammar_from_gbnf},
      {choice.lark, gen_grammar_from_lark},
      {choice.tags, gen_grammar_from_tags},
      {choice.schema, gen_grammar_from_json_schema}};
  for (const auto& [file, from] : files) {
    if (!file) continue;
    const std::string text = text_of_file(*file);
    const gen_status status = from(text.data(), text.size(), options.get(), &made, &error);
    if (status != GEN_OK) throw Failure(*file + ": " + error.message, 1, status);
  }
  if (choice.regex) {
    check_option("--regex",
                 gen_grammar_from_regex(choice.regex->data(), choice.regex->size(), options.get(),
                                        &made, &error),
                 error);
  } else if (choice.any_json) {
    check(gen_grammar_any_json(options.get(), &made, &error), error);
  }
  return Grammar(made);
}

std::string cut_off(const GrammarChoice& choice, const gen_model* model, const gen_result* result) {
  const int32_t reason = gen_result_finish_reason(result);
  const bool full = reason == GEN_FINISH_CONTEXT_FULL;
  gen_error error;
  int64_t complete = 0;
  check(gen_result_usage(result, "grammar_complete", &complete, &error), error);
  if (complete != 0 || (reason != GEN_FINISH_LENGTH && !full)) return {};
  const Grammar grammar = make_grammar(choice);
  const auto matcher =
      make<GrammarMatcher>(gen_grammar_matcher_new, grammar.get(), gen_model_tokenizer(model));
  int64_t fewest = 0;
  check(gen_grammar_matcher_min_tokens(matcher.get(), &fewest, &error), error);
  size_t n = 0;
  static_cast<void>(gen_result_tokens(result, &n));
  return std::string("the text is cut off before it follows the grammar: ") +
         (full ? "the context is full after " : "-n ends it after ") + std::to_string(n) +
         (n == 1 ? " token" : " tokens") +
         (fewest > static_cast<int64_t>(n)
              ? ", and the shortest text takes " + std::to_string(fewest)
              : "");
}

}  // namespace cli
