// SPDX-License-Identifier: Apache-2.0
// See call_grammar.h. A call is a row of expressions, one for each part; the text around calls is a
// search for marks (syntax/free_text.h), each of which leads to what it opens.
#include "calls/call_grammar.h"

#include <algorithm>
#include <utility>

#include "calls/syntax/call_writer.h"
#include "calls/syntax/expression_parts.h"
#include "calls/syntax/free_text.h"
#include "calls/syntax/marks.h"
#include "grammar/json/json_text.h"
#include "grammar/schema/string_dfa.h"

namespace gen::calls {
namespace {

using grammar::Dfa;
using grammar::Expressions;
using grammar::ExprId;
using grammar::Grammar;
using grammar::JsonRules;
using grammar::JsonStyle;
using grammar::kUnbounded;

// Bytes that may follow the first mark of a call where that is a word.
constexpr std::string_view kNameBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
constexpr std::string_view kAssistant = "assistant";

bool may_be_in_name(char c) { return kNameBytes.find(c) != std::string_view::npos; }

class CallGrammarWriter : ExpressionParts {
 public:
  CallGrammarWriter(const CallFormat& format, std::span<const Tool> tools,
                    const tokenizer::VocabSpec& spec, const CallGrammarOptions& options,
                    Expressions& to, const grammar::SchemaOptions& schemas)
      : ExpressionParts(to),
        format_(format),
        options_(options),
        marks_(spec, to),
        schemas_(schemas),
        calls_(format, called(tools, options), marks_, schemas_),
        parallel_(options.parallel && format.parallel),
        required_(options.choice == ToolChoice::kRequired) {}

  Result<ExprId> run() {
    GEN_TRY(calls_.write_arguments());
    if (!options_.response.empty()) GEN_TRY(write_response());
    if (format_.messages) return messages();
    if (format_.bare()) return bare();
    return sections();
  }

  [[nodiscard]] std::vector<std::string>& relaxed() noexcept { return calls_.relaxed(); }
  [[nodiscard]] bool items() const noexcept { return items_ || calls_.report().items; }
  [[nodiscard]] bool any_order() const noexcept { return any_order_ || calls_.report().any_order; }

 private:
  // The tools that an answer may call.
  static std::vector<const Tool*> called(std::span<const Tool> tools,
                                         const CallGrammarOptions& options) {
    const bool one = options.choice == ToolChoice::kRequired && !options.named.empty();
    std::vector<const Tool*> all;
    for (const Tool& tool : tools) {
      if (options.choice == ToolChoice::kNone || (one && tool.name != options.named)) continue;
      all.push_back(&tool);
    }
    return all;
  }

  Status write_response() {
    grammar::SchemaReport report;
    auto made = grammar::schema_expression(options_.response, schemas_, to_, &report);
    if (!made.ok() && made.status().code() == Code::kGrammar) {
      return error(Code::kGrammar, "response: %s", made.status().message());
    }
    if (!made.ok()) return made.status();
    items_ = report.items;
    any_order_ = report.any_order;
    for (const std::string& line : report.relaxed) {
      calls_.relaxed().push_back("response: " + line);
    }
    const ExprId begins = to_.bytes(grammar::ByteSet::one(grammar::kBegins));
    response_ = shared(all({schemas_.watched ? maybe(begins) : Expressions::kEmpty, *made}));
    return {};
  }

  // --- reasoning ---

  [[nodiscard]] std::string call_mark() const {
    const bool text = !format_.call.empty() && format_.call[0].field == Field::kText;
    return std::string(text ? mark_of(format_.call[0].text) : std::string_view());
  }

  // Marks that begin a call although no section was opened.
  void forbid_calls(std::vector<Way>* ways) const {
    const auto forbid = [&](std::string text) {
      if (!text.empty()) ways->push_back({std::move(text), Expressions::kNever});
    };
    forbid(std::string(mark_of(format_.section.open)));
    for (const std::string& open : format_.openings) forbid(std::string(mark_of(open)));
    const std::string mark = call_mark();
    if (mark.empty() || !may_be_in_name(mark[0])) {
      forbid(mark);
      return;
    }
    // A word of prose, unless a name follows it at once.
    for (const char c : kNameBytes) forbid(mark + c);
  }

  // Reasoning and the mark that closes it, from its beginning on.
  ExprId reasoning_body(const Marks& marks) {
    std::vector<Way> ways = {{std::string(mark_of(marks.close)), Expressions::kEmpty, true}};
    if (ways[0].mark.empty()) return Expressions::kNever;
    if (!format_.bare()) forbid_calls(&ways);
    return shared(free_text(marks_, ways, false));
  }

  // What the answer begins with before anything else; then the white space behind it.
  ExprId reasoning_first() {
    std::vector<ExprId> bodies;
    std::vector<ExprId> wholes;
    for (const Marks& marks : format_.reasoning) {
      const ExprId body = reasoning_body(marks);
      if (body == Expressions::kNever) continue;
      const std::string_view close = marks.close;
      const size_t end = close.find_last_not_of(" \t\r\n") + 1;
      const ExprId with_space = all({body, maybe(to_.literal(close.substr(end)))});
      bodies.push_back(with_space);
      wholes.push_back(all({marks_.text(mark_of(marks.open)), with_space}));
    }
    if (options_.in_reasoning && !bodies.empty()) return to_.choice(bodies);
    if (!options_.may_reason || wholes.empty()) return Expressions::kEmpty;
    return maybe(to_.choice(wholes));
  }

  void add_reasoning(std::vector<Way>* ways) {
    for (const Marks& marks : format_.reasoning) {
      const std::string open(mark_of(marks.open));
      if (open.empty()) continue;
      const ExprId body = options_.may_reason ? reasoning_body(marks) : Expressions::kNever;
      ways->push_back({open, body});
    }
  }

  void add_wrappers(std::vector<Way>* ways) const {
    for (const Marks& wrapper : format_.wrappers) {
      for (const std::string& text : {wrapper.open, wrapper.close}) {
        const std::string mark(mark_of(text));
        if (!mark.empty() && marks_.first_token(mark) != std::string::npos) {
          ways->push_back({mark, Expressions::kEmpty});
        }
      }
    }
  }

  ExprId wrapped_response() {
    std::vector<ExprId> ways = {response_};
    for (const Marks& marks : format_.wrappers) {
      if (marks.open.empty() || marks.close.empty()) continue;
      ways.push_back(all({marks_.text(marks.open), response_, marks_.text(marks.close)}));
    }
    return to_.choice(ways);
  }

  // --- answers of a format without calls ---

  ExprId no_calls() {
    const ExprId first = reasoning_first();
    if (!options_.response.empty()) return all({first, wrapped_response()});
    std::vector<Way> ways;
    add_reasoning(&ways);
    add_wrappers(&ways);
    const ExprId text = free_text(marks_, ways, true);
    return options_.in_reasoning ? all({first, text}) : text;
  }

  // --- answers with sections ---

  Result<ExprId> sections() {
    const std::string section(mark_of(format_.section.open));
    const std::string mark = section.empty() ? call_mark() : section;
    if (mark.empty() && calls_.tools().empty()) return no_calls();
    if (mark.empty()) {
      return error(Code::kGrammar, "the format %s has no mark before calls", format_.name.c_str());
    }
    const std::string& opening = section.empty() ? format_.call[0].text : format_.section.open;
    const size_t begin = opening.find(mark);
    // What follows the mark, and what stands for a section as a whole.
    ExprId rest = Expressions::kNever;
    ExprId whole = Expressions::kNever;
    if (!calls_.tools().empty()) {
      const std::string_view behind = std::string_view(opening).substr(begin + mark.size());
      rest =
          shared(section.empty() ? calls_.section_rest(begin + mark.size(), parallel_)
                                 : all({marks_.text(behind), calls_.section_rest(0, parallel_)}));
      whole = all({marks_.text(std::string_view(opening).substr(0, begin + mark.size())), rest});
    }
    const ExprId more = parallel_
                            ? to_.repeat(all({marks_.text(format_.after), whole}), 0, kUnbounded)
                            : Expressions::kEmpty;
    const ExprId calls = calls_.tools().empty() ? Expressions::kNever : all({whole, more});
    const ExprId first = reasoning_first();
    if (required_) return all({first, calls});
    if (!options_.response.empty()) return all({first, any({wrapped_response(), calls})});
    std::vector<Way> ways = {{mark, rest, !parallel_}};
    forbid_calls(&ways);
    add_reasoning(&ways);
    add_wrappers(&ways);
    const ExprId text = free_text(marks_, ways, true);
    return options_.in_reasoning ? all({first, text}) : text;
  }

  // --- answers whose calls have no marks ---

  // A member of that name, however it is escaped.
  static std::string pattern_of(std::string_view key) {
    std::string pattern;
    for (const char c : key) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
      std::string digits;
      for (const char d : std::string_view(hex)) {
        const bool letter = d >= 'a';
        digits +=
            letter ? std::string("[") + d + static_cast<char>(d - 32) + "]" : std::string(1, d);
      }
      pattern += "(\\x" + std::string(hex) + "|\\\\u00" + digits + ")";
    }
    return pattern;
  }

  Result<ExprId> bare_text() {
    std::string keys;
    for (const std::string& key :
         {std::string("arguments"), std::string("parameters"), format_.keys.arguments}) {
      keys += (keys.empty() ? "" : "|") + pattern_of(key);
    }
    const grammar::DfaFuel& fuel = schemas_.automata;
    GEN_ASSIGN(const Dfa calls,
               strings_like("[ \\t\\r\\n]*\\{[^]*|[^]*\"(" + keys + ")\"[ \\t\\r\\n]*:[^]*", fuel));
    GEN_ASSIGN(const Dfa text,
               grammar::combine(grammar::any_string(), calls, grammar::Both::kNot, fuel));
    return grammar::expression_of(to_, text);
  }

  Result<ExprId> bare() {
    const ExprId calls = calls_.section_rest(0, parallel_);
    const ExprId first = reasoning_first();
    if (required_) return all({first, calls});
    if (!options_.response.empty()) return all({first, any({response_, calls})});
    GEN_ASSIGN(const ExprId text, bare_text());
    // A bracket before a call could hide it.
    GEN_ASSIGN(const Dfa plain, strings_like("[^{\\[]*", schemas_.automata));
    return all({first, any({text, all({grammar::expression_of(to_, plain), calls})})});
  }

  // --- answers of messages ---

  // The prompt has written the mark that begins the first header, and who speaks.
  ExprId header(const std::string& text, bool is_first) {
    const std::vector<std::string>& starts = format_.messages->starts;
    const std::string start = starts.empty() ? std::string() : starts[0];
    const bool begins = text.starts_with(start);
    if (!is_first) return marks_.text(begins ? text : start + std::string(kAssistant) + text);
    return marks_.text(std::string_view(text).substr(begins ? start.size() : 0));
  }

  static std::string with_name(std::string header, const std::string& name) {
    constexpr std::string_view kPlace = "NAME";
    const size_t at = header.find(kPlace);
    if (at != std::string::npos) header.replace(at, kPlace.size(), name);
    return header;
  }

  // A message with a call.
  ExprId call_message(bool is_first) {
    const Messages& messages = *format_.messages;
    const ExprId end = marks_.text(messages.call_end);
    std::vector<ExprId> ways;
    for (size_t tool = 0; tool < calls_.tools().size(); ++tool) {
      const std::string text = with_name(messages.call_header, calls_.tools()[tool]->name);
      const ExprId body = messages.body_is_arguments
                              ? calls_.arguments(tool)
                              : all({marks_.text(format_.section.open), calls_.call(tool, 0),
                                     marks_.text(format_.section.close)});
      ways.push_back(all({header(text, is_first), body, end}));
    }
    return to_.choice(ways);
  }

  // Any text without marks.
  Result<ExprId> message_text() {
    std::vector<std::string> words;
    const Messages& messages = *format_.messages;
    const auto add = [&](std::string_view text) {
      const std::string mark(mark_of(text));
      if (mark.empty() || std::find(words.begin(), words.end(), mark) != words.end()) return;
      words.push_back(mark);
    };
    for (const std::string& mark : messages.starts) add(mark);
    for (const std::string& mark : messages.ends) add(mark);
    if (!messages.body_is_arguments) {
      add(format_.section.open);
      for (const std::string& open : format_.openings) add(open);
      add(call_mark());
    }
    for (const Marks& marks : format_.reasoning) add(marks.open);
    GEN_ASSIGN(const Dfa text, strings_without(words, schemas_.automata));
    return shared(grammar::expression_of(to_, text));
  }

  Result<ExprId> messages() {
    const Messages& messages = *format_.messages;
    GEN_ASSIGN(const ExprId text, message_text());
    std::vector<ExprId> ends;
    for (const std::string& end : messages.ends) ends.push_back(marks_.text(mark_of(end)));
    const ExprId end = ends.empty() ? Expressions::kEmpty : to_.choice(ends);
    const bool may_reason = options_.may_reason && !messages.reasoning_header.empty();
    const bool has_text = !required_ && !messages.text_header.empty();
    const ExprId body = options_.response.empty() ? text : response_;
    // A message, whether it is the first one.
    const auto reasoning = [&](bool is_first) {
      if (!may_reason) return Expressions::kNever;
      return all({header(messages.reasoning_header, is_first), text, end});
    };
    const auto spoken = [&](bool is_first, ExprId closed) {
      if (!has_text) return Expressions::kNever;
      return all({header(messages.text_header, is_first), body, closed});
    };
    const ExprId calls =
        all({call_message(false),
             parallel_ ? to_.repeat(call_message(false), 0, kUnbounded) : Expressions::kEmpty});
    const ExprId first_calls =
        all({call_message(true),
             parallel_ ? to_.repeat(call_message(false), 0, kUnbounded) : Expressions::kEmpty});
    // Between them: reasoning, and any text that is no answer of its own.
    const ExprId inner = shared(to_.repeat(
        any({reasoning(false),
             options_.response.empty() && !required_ ? spoken(false, end) : Expressions::kNever}),
        0, kUnbounded));
    const ExprId last = any({spoken(false, maybe(end)), calls});
    const ExprId behind = all({inner, last});
    if (options_.in_reasoning) return all({text, end, behind});
    const ExprId begun =
        any({reasoning(true),
             options_.response.empty() && !required_ ? spoken(true, end) : Expressions::kNever});
    return any({spoken(true, maybe(end)), first_calls, all({begun, behind})});
  }

  const CallFormat& format_;
  const CallGrammarOptions& options_;
  MarkWriter marks_;
  const grammar::SchemaOptions& schemas_;
  CallWriter calls_;
  const bool parallel_;
  const bool required_;
  bool items_ = false;
  bool any_order_ = false;
  ExprId response_ = Expressions::kNever;
};

Status check(std::span<const Tool> tools, const CallGrammarOptions& options) {
  for (size_t i = 0; i < tools.size(); ++i) {
    if (find_tool(tools, tools[i].name) != &tools[i]) {
      return error(Code::kInvalidArgument, "two tools have the name %s", tools[i].name.c_str());
    }
  }
  if (options.choice != ToolChoice::kRequired) return {};
  if (tools.empty()) return error(Code::kInvalidArgument, "a call is required, without tools");
  if (!options.named.empty() && find_tool(tools, options.named) == nullptr) {
    return error(Code::kInvalidArgument, "no tool has the name %.80s", options.named.c_str());
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Grammar>> call_grammar(const CallFormat& format,
                                                    std::span<const Tool> tools,
                                                    const tokenizer::VocabSpec& spec,
                                                    const CallGrammarOptions& options,
                                                    CallGrammarReport* report) {
  GEN_TRY(check(tools, options));
  grammar::Building building(options.limits.edges, options.limits.cancel.get());
  Expressions expressions(&building);
  grammar::SchemaOptions schemas = options.schemas;
  schemas.automata.building = &building;
  // An object may be a call or the answer: the reader beside the grammar cannot tell.
  if (format.bare() && !options.response.empty()) {
    schemas.watched = false;
    schemas.unwatched = "as an answer and a call begin alike";
  }
  CallGrammarWriter writer(format, tools, spec, options, expressions, schemas);
  auto root = writer.run();
  if (const Status stopped = building.status(); !stopped.ok()) return stopped;
  if (!root.ok()) return root.status();
  JsonRules rules;
  if (schemas.watched) {
    const JsonStyle& style = schemas.style;
    rules = {true, writer.items(), style.in_order() && !writer.any_order(),
             style.plain || style.digits != kUnbounded, true};
  }
  GEN_ASSIGN(auto made, Grammar::from_expressions(expressions, *root, options.limits, rules));
  if (report != nullptr) report->relaxed = std::move(writer.relaxed());
  return made;
}

}  // namespace gen::calls
