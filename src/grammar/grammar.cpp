// SPDX-License-Identifier: Apache-2.0
// Grammar, see grammar.h.
#include "grammar/grammar.h"

#include <utility>

#include "grammar/notation/gbnf.h"
#include "grammar/json/json.h"
#include "grammar/notation/lark.h"
#include "grammar/machine/machine_builder.h"
#include "grammar/notation/tags_text.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxVocabularies = 8;
constexpr uint64_t kWorkPerEndless = 16;  // per edge, to find infinite values

Status check_size(std::string_view text, const GrammarLimits& limits) {
  if (text.size() <= limits.text_bytes) return {};
  return error(Code::kGrammar, "grammar of %zu bytes is above %zu", text.size(), limits.text_bytes);
}

// Returns `made`, unless the building stopped on the way: then it is meaningless.
template <typename T>
Result<T> told(const Building& building, Result<T> made, const char* place = "") {
  const Status why = building.status();
  if (why.ok()) return made;
  if (why.code() == Code::kCancelled) return why;
  // The stage that counted may have reported the position.
  const Status said = made.status();
  if (std::string_view(said.message()).find(why.message()) != std::string_view::npos) return made;
  return error(Code::kGrammar, "%s%s", place, why.message());
}

// The rules that a schema's texts follow beside the grammar.
JsonRules rules_of(const SchemaReport& report, const JsonStyle& style, bool within) {
  return {true, report.items, style.in_order() && !report.any_order,
          style.plain || style.digits != kUnbounded, within};
}

}  // namespace

Grammar::Grammar(Machines machines, const GrammarLimits& limits)
    : machines_(std::make_shared<const Machines>(std::move(machines))),
      limits_(limits.masks),
      cancel_(limits.cancel) {}

Result<std::shared_ptr<const Grammar>> Grammar::from_gbnf(std::string_view text,
                                                          const GrammarLimits& limits) {
  GEN_TRY(check_size(text, limits));
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  GEN_ASSIGN(const ExprId root, told(building, parse_gbnf(text, expressions)));
  return from_expressions(expressions, root, limits);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_regex(std::string_view pattern,
                                                           RegexMatch match,
                                                           const GrammarLimits& limits) {
  GEN_TRY(check_size(pattern, limits));
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  DfaFuel automata = limits.automata;
  automata.building = &building;
  GEN_ASSIGN(const ExprId root, told(building, parse_regex(pattern, match, expressions, automata)));
  return from_expressions(expressions, root, limits);
}

Result<std::shared_ptr<const Grammar>> Grammar::any_json(const GrammarLimits& limits,
                                                         const JsonStyle& style) {
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  return from_expressions(expressions, any_json_expression(expressions, style), limits);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_json_schema(std::string_view schema,
                                                                 const SchemaOptions& options,
                                                                 const GrammarLimits& limits,
                                                                 SchemaReport* report) {
  GEN_TRY(check_size(schema, limits));
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  SchemaReport unused;
  if (report == nullptr) report = &unused;
  SchemaOptions counted = options;
  counted.automata.building = &building;
  GEN_ASSIGN(const ExprId root,
             told(building, schema_expression(schema, counted, expressions, report), "#: "));
  const JsonRules rules = rules_of(*report, options.style, false);
  auto machines = build_machines(expressions, root, limits.edges);
  if (!machines.ok() && machines.status().code() == Code::kGrammar) {
    return error(Code::kGrammar, "#: %s", machines.status().message());
  }
  if (!machines.ok()) return machines.status();
  if (!machines->matches()) return error(Code::kGrammar, "#: no value is valid");
  return from_machines(std::move(*machines), limits, rules, &building);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_lark(std::string_view text,
                                                          const GrammarLimits& limits,
                                                          const SchemaOptions& schemas,
                                                          SchemaReport* report) {
  GEN_TRY(check_size(text, limits));
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  SchemaOptions contents = schemas;
  contents.automata = limits.automata;
  contents.automata.building = &building;
  contents.watched = false;  // it is not known where in a text its schemas begin
  GEN_ASSIGN(const ExprId root, told(building, parse_lark(text, expressions, contents, report)));
  return from_expressions(expressions, root, limits);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_tags(const MakeTags& make,
                                                          const TagOptions& options,
                                                          const GrammarLimits& limits) {
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  GEN_ASSIGN(const std::vector<Tag> tags, told(building, make(expressions)));
  GEN_ASSIGN(const ExprId root, told(building, tags_expression(tags, options, expressions)));
  return from_expressions(expressions, root, limits);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_tags(std::string_view text,
                                                          const GrammarLimits& limits,
                                                          const SchemaOptions& schemas,
                                                          SchemaReport* report) {
  GEN_TRY(check_size(text, limits));
  Building building(limits.edges, limits.cancel.get());
  Expressions expressions(&building);
  TagOptions options;
  SchemaOptions contents = schemas;
  contents.automata = limits.automata;
  contents.automata.building = &building;
  contents.watched = false;  // except for schemas that are a tag's whole body, see parse_tags
  SchemaReport unused;
  if (report == nullptr) report = &unused;
  GEN_ASSIGN(const auto tags,
             told(building, parse_tags(text, expressions, &options, contents, report)));
  GEN_ASSIGN(const ExprId root, told(building, tags_expression(tags, options, expressions)));
  JsonRules rules;
  if (options.watched) {
    rules = rules_of(*report, schemas.style, true);
  }
  return from_expressions(expressions, root, limits, rules);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_expressions(const Expressions& expressions,
                                                                 ExprId root,
                                                                 const GrammarLimits& limits,
                                                                 const JsonRules& rules) {
  GEN_ASSIGN(Machines machines, build_machines(expressions, root, limits.edges));
  if (!machines.matches()) return error(Code::kGrammar, "the grammar matches no text");
  return from_machines(std::move(machines), limits, rules, expressions.building());
}

Result<std::shared_ptr<const Grammar>> Grammar::from_machines(Machines machines,
                                                              const GrammarLimits& limits,
                                                              const JsonRules& rules,
                                                              Building* building) {
  machines.json = rules;
  const size_t n_edges = machines.byte_edges.size() + machines.call_edges.size();
  if (!goes_on(building, rules.items ? kWorkPerEndless * n_edges : 0)) return building->status();
  if (rules.items) machines.endless = find_endless(machines);
  return std::make_shared<const Grammar>(std::move(machines), limits);
}

std::shared_ptr<const TokenGrammar> Grammar::known_over(const Vocabulary* vocabulary) const {
  for (const auto& known : over_) {
    if (&known->vocabulary() == vocabulary) return known;
  }
  return nullptr;
}

Result<std::shared_ptr<const TokenGrammar>> Grammar::over(
    const std::shared_ptr<const Vocabulary>& vocabulary) const {
  {
    const std::lock_guard lock(mutex_);
    if (auto known = known_over(vocabulary.get())) return known;
  }
  // Made without the lock, so that nobody waits for another's; if two are made for one vocabulary,
  // one is kept.
  GEN_ASSIGN(auto made, once_over(vocabulary));
  const std::lock_guard lock(mutex_);
  if (auto known = known_over(vocabulary.get())) return known;
  if (over_.size() >= kMaxVocabularies) over_.erase(over_.begin());
  over_.push_back(made);
  return made;
}

Result<std::shared_ptr<const TokenGrammar>> Grammar::once_over(
    const std::shared_ptr<const Vocabulary>& vocabulary) const {
  return TokenGrammar::create(machines_, vocabulary, limits_, cancel_.get());
}

}  // namespace gen::grammar
