// SPDX-License-Identifier: Apache-2.0
// Options of grammars in the C API, see grammar_options.h.
#include "api/text/grammar_options.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/run_handles.h"
#include "grammar/schema/relax.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::TextOption;
using gen::api::WholeOption;
using gen::grammar::RegexMatch;
using Options = gen_grammar_options;

constexpr std::string_view kOrders[] = {"style", "any", "definition"};  // by Options::Order

/// Parses one of two words; `*second` tells which.
Status choose(const char* text, std::string_view one, std::string_view two, bool* second) {
  if (text != one && text != two) {
    return gen::error(Code::kInvalidArgument, "%.40s is neither %.*s nor %.*s", text,
                      static_cast<int>(one.size()), one.data(), static_cast<int>(two.size()),
                      two.data());
  }
  *second = text == two;
  return {};
}

Status set_match(Options& options, const char* text) {
  bool search = false;
  GEN_TRY(choose(text, "whole", "search", &search));
  options.match = search ? RegexMatch::kSearch : RegexMatch::kWhole;
  return {};
}

Status set_formats(Options& options, const char* text) {
  bool annotate = false;
  GEN_TRY(choose(text, "assert", "annotate", &annotate));
  options.schemas.assert_formats = !annotate;
  return {};
}

Status set_one_of(Options& options, const char* text) {
  return choose(text, "exact", "any_of", &options.schemas.one_of_as_any_of);
}

Status set_style(Options& options, const char* text) {
  return choose(text, "plain", "any", &options.any_style);
}

Status set_order(Options& options, const char* text) {
  const std::string_view name = text;
  const auto* const found = std::find(std::begin(kOrders), std::end(kOrders), name);
  if (found == std::end(kOrders)) {
    return gen::error(Code::kInvalidArgument, "%.40s is not style, any or definition", text);
  }
  options.order = static_cast<Options::Order>(found - std::begin(kOrders));
  return {};
}

Status set_forced(Options& options, const char* text) {
  return choose(text, "only", "tokenizer", &options.forced_by_tokenizer);
}

Status set_ignored(Options& options, const char* text) {
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    std::string name(rest.substr(0, end));
    if (!gen::grammar::is_asking_keyword(name)) {
      return gen::error(Code::kInvalidArgument, "%.60s is not a keyword that can be ignored",
                        name.c_str());
    }
    names.push_back(std::move(name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  options.schemas.ignored = std::move(names);
  return {};
}

std::string ignored_of(const Options& options) {
  std::string names;
  for (const std::string& name : options.schemas.ignored) {
    if (!names.empty()) names += ',';
    names += name;
  }
  return names;
}

const OptionRow<Options> kRows[] = {
    {"regex_match",
     TextOption<Options>{[] { return std::string("whole, search"); }, set_match,
                         [](const Options& o) {
                           return std::string(o.match == RegexMatch::kWhole ? "whole" : "search");
                         }},
     "whether a text must match a regular expression as a whole, or contain a match"},
    {"forced_tokens",
     TextOption<Options>{[] { return std::string("only, tokenizer"); }, set_forced,
                         [](const Options& o) {
                           return std::string(o.forced_by_tokenizer ? "tokenizer" : "only");
                         }},
     "what gen_grammar_matcher_forced returns: tokens without an alternative, or the tokenizer's "
     "tokens for the bytes without an alternative"},
    {"json_formats",
     TextOption<Options>{[] { return std::string("assert, annotate"); }, set_formats,
                         [](const Options& o) {
                           return std::string(o.schemas.assert_formats ? "assert" : "annotate");
                         }},
     "whether a JSON Schema's \"format\" is enforced or ignored"},
    {"json_one_of",
     TextOption<Options>{[] { return std::string("exact, any_of"); }, set_one_of,
                         [](const Options& o) {
                           return std::string(o.schemas.one_of_as_any_of ? "any_of" : "exact");
                         }},
     "whether \"oneOf\" of a JSON Schema means exactly one, or at least one as \"anyOf\" does"},
    {"json_ignore",
     TextOption<Options>{[] { return std::string("keywords with commas between them"); },
                         set_ignored, ignored_of},
     "keywords of a JSON Schema that are ignored"},
    {"json_style",
     TextOption<Options>{
         [] { return std::string("plain, any"); }, set_style,
         [](const Options& o) { return std::string(o.any_style ? "any" : "plain"); }},
     "spelling of JSON: plain, as programs write it and all usual decoders accept, or any that "
     "JSON allows"},
    {"json_order",
     TextOption<Options>{
         [] { return std::string("style, any, definition"); }, set_order,
         [](const Options& o) { return std::string(kOrders[static_cast<size_t>(o.order)]); }},
     "order of the members of a JSON Schema's objects: any, or definition, that of \"properties\" "
     "with other members after them; style: definition if the style is plain and an object has at "
     "most 255 names"},
    {"json_space",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_space; }, -1, kAnyMost},
     "most white space in one place of JSON texts, in characters; 0: compact; the largest value: "
     "no limit; -1: as the style has it, one space with plain"},
    {"json_digits",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_digits; }, 0, kAnyMost},
     "most digits in a row in numbers of JSON texts; the largest value: no limit; 0: as the style "
     "has it, 15 and 17 places with plain"},
    {"max_text", WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_text; }, 1, 1024},
     "MiB of a grammar's source"},
    {"max_edges",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_edges; }, 1, kAnyMost},
     "edges of a grammar's automata"},
    {"max_states",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_states; }, 1, kAnyMost},
     "states of a regular expression with lookaround"},
    {"max_items",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_items; }, 1, kAnyMost},
     "parses of a text that are followed at once"},
    {"max_work",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.max_work; }, 1, kAnyMost},
     "steps for one mask"},
    {"cache_memory",
     WholeOption<Options>{[](Options& o) -> int32_t& { return o.cache_memory; }, 0, kAnyMost},
     "MiB of masks that are kept for each tokenizer"},
};

}  // namespace

namespace gen::api {

grammar::JsonStyle json_style_of(const gen_grammar_options* options) {
  using grammar::JsonStyle;
  const Options defaults;
  if (options == nullptr) options = &defaults;
  JsonStyle style = options->any_style ? JsonStyle() : JsonStyle::of_models();
  const auto most = [](int32_t asked) {
    return asked == kAnyMost ? grammar::kUnbounded : static_cast<uint32_t>(asked);
  };
  if (options->max_space >= 0) {
    style.space = most(options->max_space);
    style.one_line = false;
  }
  if (options->max_digits > 0) style.digits = most(options->max_digits);
  if (options->order != Options::Order::kOfStyle) {
    style.order = options->order == Options::Order::kAny ? JsonStyle::Order::kAny
                                                         : JsonStyle::Order::kDefinition;
  }
  return style;
}

grammar::SchemaOptions schema_options_of(const gen_grammar_options* options) {
  const Options defaults;
  if (options == nullptr) options = &defaults;
  grammar::SchemaOptions made = options->schemas;
  made.style = json_style_of(options);
  made.automata.states = static_cast<size_t>(options->max_states);
  // It is called while a grammar is made; the options are not freed before that call ends.
  if (!options->documents.empty()) {
    made.resolver = [documents = &options->documents](const std::string& uri) {
      const auto found = documents->find(uri);
      return found != documents->end() ? std::optional(found->second) : std::nullopt;
    };
  }
  return made;
}

grammar::GrammarLimits limits_of(const gen_grammar_options* options) {
  const Options defaults;
  if (options == nullptr) options = &defaults;
  grammar::GrammarLimits limits;
  limits.text_bytes = static_cast<size_t>(options->max_text) << 20U;
  limits.edges = static_cast<size_t>(options->max_edges);
  limits.automata.states = static_cast<size_t>(options->max_states);
  limits.masks.items = static_cast<size_t>(options->max_items);
  limits.masks.work = static_cast<uint64_t>(options->max_work);
  limits.masks.cache_bytes = static_cast<size_t>(options->cache_memory) << 20U;
  limits.cancel = options->cancel;
  return limits;
}

}  // namespace gen::api

gen_status gen_grammar_options_new(gen_grammar_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_grammar_options;
    return {};
  });
}

gen_status gen_grammar_options_set(gen_grammar_options* options, const char* key, const char* value,
                                   gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<Options>(kRows, *options, key, value);
  });
}

gen_status gen_grammar_options_add_schema(gen_grammar_options* options, const char* uri,
                                          const char* text, size_t len, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(uri, "uri"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    const std::string_view all = uri;
    const std::string name(all.substr(0, all.find('#')));
    if (name.empty()) return gen::error(Code::kInvalidArgument, "a document needs a URI");
    options->documents.insert_or_assign(name, std::string(view));
    return {};
  });
}

gen_status gen_grammar_options_set_cancel(gen_grammar_options* options, gen_cancel* cancel,
                                          gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    options->cancel = cancel != nullptr ? cancel->flag : nullptr;
    return {};
  });
}

gen_status gen_grammar_options_describe(const gen_grammar_options* options, char* buf,
                                        size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<Options>(kRows, *options), buf, capacity,
                              n);
  });
}

void gen_grammar_options_free(gen_grammar_options* options) { delete options; }
