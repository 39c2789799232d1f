// SPDX-License-Identifier: Apache-2.0
// From a Lark file's nodes to expressions, see lark.h. Operands precede their nodes, so one pass
// over a body is enough; a terminal is compiled before those that name it.
#include "grammar/notation/lark.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/notation/lark_automata.h"
#include "grammar/notation/lark_common.h"
#include "grammar/notation/lark_file.h"
#include "grammar/regex/regex.h"
#include "grammar/regex/regex_sets.h"
#include "grammar/notation/lark_tokens.h"
#include "grammar/schema/json_value.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxSchemas = 256;

using Node = LarkNode;
using NodeKind = LarkNode::Kind;

// State shared by all files of a text, including nested ones.
struct LarkShared {
  std::string_view text;
  const std::vector<LarkPlace>& places;
  Expressions& to;
  const SchemaOptions& schemas;
  SchemaReport* report;
  RegexSets sets;
  LarkAutomata automata;
  size_t n_schemas = 0;
};

class Lowering {
 public:
  Lowering(const LarkFile& file, LarkShared& shared)
      : file_(file), shared_(shared), to_(shared.to), value_(file.nodes.size()) {}

  Result<ExprId> run() {
    GEN_TRY(name_all());
    GEN_TRY(ignore_all());
    for (size_t i = 0; i < file_.definitions.size(); ++i) {
      if (file_.definitions[i].terminal) GEN_TRY(terminal(i));
    }
    for (size_t i = 0; i < file_.definitions.size(); ++i) {
      const LarkDefinition& made = file_.definitions[i];
      if (made.terminal) continue;
      GEN_TRY(body(made.body));
      GEN_ASSIGN(const ExprId whole, with_attributes(made));
      to_.define(rules_[i], whole);
    }
    const auto start = names_.find("start");
    if (start == names_.end()) return fail(file_.end_place, "no rule \"start\"");
    const ExprId whole = to_.rule(rules_[start->second]);
    return file_.ignore_at_start ? sequence({ignored_, whole}) : whole;
  }

 private:
  [[nodiscard]] Status fail(uint32_t place, const std::string& message) const {
    return error_at(shared_.text, shared_.places[place].begin, message);
  }
  // The status of an error in a part that is parsed separately.
  [[nodiscard]] Status inside(uint32_t place, const std::string& what, const Status& status) const {
    if (status.code() != Code::kGrammar) return status;
    return fail(place, what + status.message());
  }
  [[nodiscard]] std::string_view spelled(uint32_t place) const {
    const LarkPlace& word = shared_.places[place];
    return shared_.text.substr(word.begin, word.end - word.begin);
  }
  ExprId sequence(std::initializer_list<ExprId> parts) {
    return to_.sequence(std::span(parts.begin(), parts.size()));
  }

  Status name_all() {
    for (size_t i = 0; i < file_.definitions.size(); ++i) {
      const LarkDefinition& made = file_.definitions[i];
      if (!names_.try_emplace(made.name, i).second) {
        return fail(made.place, quoted(made.name) + " is defined twice");
      }
      rules_.push_back(to_.add_rule());
    }
    progress_.assign(file_.definitions.size(), Progress::kNone);
    return {};
  }

  Status ignore_all() {
    if (file_.ignored.empty()) return {};
    std::vector<ExprId> choices;
    for (const LarkBody& ignored : file_.ignored) {
      GEN_TRY(terminals_of(ignored));
      GEN_TRY(body(ignored));
      choices.push_back(value_[ignored.whole]);
    }
    const RuleId rule = to_.add_rule();
    to_.define(rule, to_.repeat(to_.choice(choices), 0, file_.ignore_once ? 1 : kUnbounded));
    ignored_ = to_.rule(rule);
    return {};
  }

  Result<size_t> definition_of(const Node& name) const {
    const auto known = names_.find(spelled(name.place));
    if (known == names_.end()) {
      const bool rule = shared_.places[name.place].word == LarkWord::kRule;
      return fail(name.place, (rule ? "no rule " : "no terminal ") + quoted(spelled(name.place)));
    }
    if (name.in_terminal && !file_.definitions[known->second].terminal) {
      return fail(name.place, "the rule " + quoted(spelled(name.place)) +
                                  " cannot stand in a terminal or a rule with attributes");
    }
    return known->second;
  }

  // Compiles the terminals that a body names.
  Status terminals_of(const LarkBody& body) {
    for (uint32_t n = body.begin; n < body.end; ++n) {
      const Node& node = file_.nodes[n];
      if (node.kind != NodeKind::kName || !node.in_terminal) continue;
      GEN_ASSIGN(const size_t named, definition_of(node));
      GEN_TRY(terminal(named));
    }
    return {};
  }

  // Compiles a terminal after those that it names.
  Status terminal(size_t first) {
    struct Open {
      size_t which;
      uint32_t next;  // node
    };
    std::vector<Open> open;
    const auto begin = [&](size_t which) {
      progress_[which] = Progress::kOpen;
      open.push_back({which, file_.definitions[which].body.begin});
    };
    if (progress_[first] == Progress::kNone) begin(first);
    while (!open.empty()) {
      Open& now = open.back();
      const LarkDefinition& made = file_.definitions[now.which];
      if (now.next == made.body.end) {
        GEN_TRY(body(made.body));
        to_.define(rules_[now.which], value_[made.body.whole]);
        progress_[now.which] = Progress::kDone;
        open.pop_back();
        continue;
      }
      const Node& node = file_.nodes[now.next++];
      if (node.kind != NodeKind::kName) continue;
      GEN_ASSIGN(const size_t named, definition_of(node));
      if (progress_[named] == Progress::kOpen) {
        return fail(node.place, "the terminal " + quoted(spelled(node.place)) + " contains itself");
      }
      if (progress_[named] == Progress::kNone) begin(named);
    }
    return {};
  }

  Status body(const LarkBody& body) {
    for (uint32_t n = body.begin; n < body.end; ++n) {
      GEN_ASSIGN(value_[n], node(file_.nodes[n]));
      if (to_.building() != nullptr) GEN_TRY(to_.building()->status());
    }
    return {};
  }

  Result<ExprId> with_attributes(const LarkDefinition& made) {
    ExprId body = value_[made.body.whole];
    if (!made.lazy && !made.has_suffix && !made.has_stop) return body;
    auto whole = Result<ExprId>(body);
    if (made.has_stop) {
      const ExprId stop = value_[made.stop];
      if (stop != Expressions::kEmpty) whole = shared_.automata.until(body, stop);
    } else {
      if (made.has_suffix) body = sequence({body, value_[made.suffix]});
      whole = shared_.automata.shortest(body);
    }
    if (!whole.ok()) return inside(made.place, "with its attributes it takes ", whole.status());
    return lexeme(whole.value());
  }

  // With ignored text after it.
  ExprId lexeme(ExprId expr) {
    return expr == Expressions::kEmpty ? expr : sequence({expr, ignored_});
  }

  Result<ExprId> node(const Node& node) {
    switch (node.kind) {
      case NodeKind::kSequence:
        return to_.sequence(values_of(node));
      case NodeKind::kChoice:
        return to_.choice(values_of(node));
      case NodeKind::kRepeat:
        return to_.repeat(value_[file_.parts[node.first]], node.min, node.max);
      case NodeKind::kName: {
        GEN_ASSIGN(const size_t named, definition_of(node));
        const ExprId rule = to_.rule(rules_[named]);
        const bool plain = node.in_terminal || !file_.definitions[named].terminal;
        return plain ? rule : lexeme(rule);
      }
      default:
        break;
    }
    GEN_ASSIGN(const ExprId made, leaf(node));
    return node.in_terminal ? made : lexeme(made);
  }

  std::vector<ExprId> values_of(const Node& node) const {
    std::vector<ExprId> made;
    for (uint32_t i = 0; i < node.count; ++i) made.push_back(value_[file_.parts[node.first + i]]);
    return made;
  }

  Result<ExprId> leaf(const Node& node) {
    switch (node.kind) {
      case NodeKind::kString: {
        GEN_ASSIGN(const LarkString made, lark_string(shared_.text, shared_.places[node.place]));
        return made.any_case ? in_any_case(made.text) : to_.literal(made.text);
      }
      case NodeKind::kRange:
        return range(node);
      case NodeKind::kRegex: {
        GEN_ASSIGN(const LarkPattern made, lark_pattern(shared_.text, shared_.places[node.place]));
        return parse_rust_regex(shared_.text.substr(0, made.end), made.begin, made.flags,
                                shared_.sets);
      }
      case NodeKind::kCommon:
        return parse_rust_regex(lark_common_pattern(node.min), 0, {}, shared_.sets);
      case NodeKind::kToken: {
        GEN_ASSIGN(TokenTerm term, lark_token(shared_.text, shared_.places[node.place]));
        return to_.token(std::move(term));
      }
      case NodeKind::kJson:
        return schema(node);
      case NodeKind::kSubstring:
        return substring(node);
      case NodeKind::kNested:
        return Lowering(*file_.nested[node.min], shared_).run();
      case NodeKind::kNot: {
        auto made = shared_.automata.negation(value_[file_.parts[node.first]]);
        if (!made.ok()) return inside(node.place, "this ~ takes ", made.status());
        return made;
      }
      default: {
        auto made = shared_.automata.both(values_of(node));
        if (!made.ok()) return inside(node.place, "an & here takes ", made.status());
        return made;
      }
    }
  }

  ExprId in_any_case(std::string_view text) {
    std::vector<ExprId> parts;
    for (size_t at = 0; at < text.size();) {
      CharSet one;
      const uint32_t c = utf8_next(text, &at);
      one.add(c, c);
      parts.push_back(shared_.sets.written(shared_.sets.in_any_case(one)));
    }
    return to_.sequence(parts);
  }

  Result<ExprId> range(const Node& node) {
    uint32_t ends[2] = {};
    for (size_t i = 0; i < 2; ++i) {
      const uint32_t place = i == 0 ? node.place : node.min;
      GEN_ASSIGN(const LarkString end, lark_string(shared_.text, shared_.places[place]));
      size_t length = 0;
      if (!end.text.empty()) ends[i] = utf8_next(end.text, &length);
      if (length == 0 || length != end.text.size() || end.any_case) {
        return fail(place, "the end of a range is one character");
      }
    }
    if (ends[1] < ends[0]) return fail(node.place, "range ends before it begins");
    CharSet set;
    set.add(ends[0], ends[1]);
    return shared_.sets.written(set);
  }

  [[nodiscard]] std::string_view json_of(const Node& node) const {
    const LarkPlace& place = shared_.places[node.place];
    return shared_.text.substr(place.end, place.next - place.end);
  }

  Result<ExprId> schema(const Node& node) {
    if (++shared_.n_schemas > kMaxSchemas) {
      return fail(node.place, "more than " + std::to_string(kMaxSchemas) + " %json");
    }
    auto made = schema_expression(json_of(node), shared_.schemas, to_, shared_.report);
    if (!made.ok()) return inside(node.place, "in this %json, ", made.status());
    return made;
  }

  Result<ExprId> substring(const Node& node) {
    const auto value = read_json(json_of(node));
    if (!value.ok()) return inside(node.place, "in this %regex, ", value.status());
    const auto& members = value.value().members;
    if (members.size() != 1) {
      return fail(node.place,
                  "%regex has one of substring_words, substring_chars and substring_chunks");
    }
    const auto& [key, what] = members[0];
    if (key == "substring_words" && what.is(JsonType::kString)) {
      return stretches(to_, words_of(what.text));
    }
    if (key == "substring_chars" && what.is(JsonType::kString)) {
      return stretches(to_, characters_of(what.text));
    }
    std::vector<std::string> chunks;
    for (const JsonValue& item : what.items) {
      if (item.is(JsonType::kString)) chunks.push_back(item.text);
    }
    if (key == "substring_chunks" && what.is(JsonType::kArray) &&
        chunks.size() == what.items.size()) {
      return stretches(to_, chunks);
    }
    if (key == "substring_words" || key == "substring_chars") {
      return fail(node.place, "%regex: " + key + " is a string");
    }
    if (key == "substring_chunks") {
      return fail(node.place, "%regex: substring_chunks is a list of strings");
    }
    return fail(node.place,
                "%regex has one of substring_words, substring_chars and substring_chunks, not " +
                    quoted(key));
  }

  enum class Progress : uint8_t { kNone, kOpen, kDone };

  const LarkFile& file_;
  LarkShared& shared_;
  Expressions& to_;
  std::vector<ExprId> value_;  // by node
  std::unordered_map<std::string_view, size_t> names_;
  std::vector<RuleId> rules_;       // by definition
  std::vector<Progress> progress_;  // of terminals
  ExprId ignored_ = Expressions::kEmpty;
};

}  // namespace

Result<ExprId> parse_lark(std::string_view text, Expressions& to, const SchemaOptions& schemas,
                          SchemaReport* report) {
  GEN_ASSIGN(const std::vector<LarkPlace> places, read_lark(text));
  GEN_ASSIGN(const std::unique_ptr<LarkFile> file, parse_lark_file(text, places));
  LarkShared shared = {
      text, places, to, schemas, report, RegexSets(to), LarkAutomata(to, schemas.automata)};
  return Lowering(*file, shared).run();
}

}  // namespace gen::grammar
