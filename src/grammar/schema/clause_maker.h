// SPDX-License-Identifier: Apache-2.0
// From literals to clauses, see clause.h; and from the names and patterns of schemas to automata.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grammar/schema/clause.h"
#include "grammar/schema/document.h"
#include "grammar/schema/string_dfa.h"
#include "grammar/schema/schema.h"

namespace gen::grammar {

class ClauseMaker {
 public:
  ClauseMaker(SchemaDocument& document, const SchemaOptions& options, SchemaReport* report)
      : document_(document), options_(options), report_(*report) {
    document_.number(&always_);
    document_.number(&never_);
  }

  /// The clauses for values of the type; none if there is no such value. kGrammar for refused
  /// schemas.
  Result<std::vector<Clause>> clauses(JsonType type, const Literals& literals);
  /// True if no value satisfies the literals; false if that takes too long to decide.
  Result<bool> is_empty(const Literals& literals);
  /// Sorted, without those that always hold; sets `*never` if one never does.
  Literals normal(Literals literals, bool* never) const;

  using SharedDfa = std::shared_ptr<const Dfa>;
  /// The automaton of `keyword` ("pattern" or "patternProperties") of the schema.
  Result<SharedDfa> pattern(const JsonValue* schema, const char* keyword, const std::string& text);
  const SharedDfa& any_string();
  /// The strings that satisfy the string constraints of a clause, without their lengths: null for
  /// all strings. kPattern is applied if they are few; otherwise see must_be_patterns().
  Result<SharedDfa> strings_of(const Clause& clause);
  /// Whether the strings must be patterns in addition to being in `strings` (of strings_of), which
  /// is null then. kGrammar if that is combined with other constraints.
  Result<bool> must_be_patterns(const Clause& clause, const SharedDfa& strings);
  Result<SharedDfa> numbers_of(const Clause& clause);
  /// The plain texts of `numbers` (of numbers_of) or of `strings` (of strings_of); all of them if
  /// none is plain.
  Result<SharedDfa> plain_numbers_of(const Clause& clause, const SharedDfa& numbers);
  /// The same for a short list of numbers, without an automaton of all their texts; otherwise null.
  SharedDfa plain_list_of(const Clause& clause);
  Result<SharedDfa> plain_strings_of(const Clause& clause, const SharedDfa& strings);
  /// The same numbers in fewer clauses: those that list their values become one.
  Result<std::vector<Clause>> join_lists(std::vector<Clause> clauses);
  /// Of the kSize constraints.
  static Lengths size_of(const Clause& clause);
  /// Names for which the literals hold. With `patterns`, which is set to true in this case, they
  /// may be the names that are patterns.
  Result<SharedDfa> names_of(const Literals& literals, bool* patterns = nullptr);
  /// Whether the literals hold for this name.
  Result<bool> fits_name(const Literals& literals, const std::string& name);
  /// Literals of the member `name`.
  Result<Literals> member_literals(const Clause& clause, const std::string& name);
  /// A literal for a subschema, or a referenced schema, in this scope.
  Literal literal(const JsonValue& schema, uint32_t scope, bool negated = false) {
    return {&schema, negated, document_.enter(scope, &schema)};
  }
  /// A schema that requires at least one of these.
  Literal any_of(Literals literals);
  /// A schema that only this value satisfies.
  Literal exactly(const JsonValue& value);
  /// A superset of the values for which the literals hold, without duplicates; false if there may
  /// be more than `most`.
  Result<bool> few_values(const Literals& literals, size_t most,
                          std::vector<const JsonValue*>* out);
  /// Whether at least `count` values satisfy the literals; false if that is not certain.
  Result<bool> has_values(const Literals& literals, uint32_t count);
  [[nodiscard]] Status refuse(const JsonValue* schema, std::string_view keyword,
                              std::string_view why) const;
  /// Adds a keyword and its position to an error from a clause, if it has none yet.
  [[nodiscard]] Status placed(const Status& why, JsonType type, const Clause& clause) const;
  [[nodiscard]] Status placed(const Status& why, const JsonValue* schema,
                              std::string_view keyword) const;
  /// Resets conflict().
  void forget() {
    empty_.clear();
    conflict_.clear();
    work_ = 0;
  }
  /// The first contradiction that `is_empty` found; empty if none.
  [[nodiscard]] const std::string& conflict() const noexcept { return conflict_; }
  Status spend(const JsonValue* schema, uint64_t work = 1);
  /// Records that the members of some object come in any order, although the style prefers one.
  void tell_any_order() noexcept { report_.any_order = true; }
  [[nodiscard]] SchemaDocument& document() const noexcept { return document_; }
  [[nodiscard]] const SchemaOptions& options() const noexcept { return options_; }

 private:
  struct Keyword {
    JsonType type;
    const JsonValue* schema;
    const std::string& key;
    const JsonValue& value;
    uint32_t scope = 0;
    Draft draft = Draft::k2020;
  };
  // Keywords made by any_of() and exactly(), valid in every draft. They are not UTF-8, so no
  // schema's text can contain them.
  static constexpr const char* kAnyOf =
      "\xFF"
      "any";
  static constexpr const char* kExactItems =
      "\xFF"
      "items";
  Status expand(JsonType type, Clause clause, std::vector<Clause>* out);
  Result<bool> decide(JsonType type, Clause* clause);
  Result<bool> take_apart(JsonType type, Clause* clause);
  Result<bool> hold(JsonType type, Literal literal, Clause* clause);
  Result<bool> fail(JsonType type, Literal literal, Clause* clause);
  Result<bool> possible(JsonType type, const Clause& clause);
  Result<bool> may_be(JsonType type, const Clause& clause);
  bool put(JsonType type, Options options, Clause* clause);
  enum class Quick { kNever, kAlways, kOpen };
  Quick quick(JsonType type, Literal literal) const;

  Result<std::vector<Options>> positive(const Keyword& k);
  Result<Options> negative(const Keyword& k);
  Result<std::vector<Options>> positive_group(const Keyword& k, bool* known);
  Result<Options> negative_group(const Keyword& k, bool* known);
  Result<Options> value_options(const Keyword& k, bool negated);
  Result<Options> type_options(const Keyword& k, bool negated);
  Result<Options> scalar(const Keyword& k, bool negated, bool* known);
  Result<const JsonValue*> reference(const Keyword& k);
  Result<std::vector<Options>> dependencies(const Keyword& k);
  Result<Literals> schema_list(const Keyword& k);
  Result<uint32_t> count_of(const Keyword& k);
  // one_of.cpp
  struct Alternative {
    Literal literal;
    std::vector<size_t> beside;  // other alternatives that may hold for the same value, by number
  };
  /// The alternatives of `all` that a value of the type may satisfy.
  Result<std::vector<Alternative>> alternatives(const Keyword& k, const Literals& all);
  Result<Options> one_of(const Keyword& k);
  Status items_of(const Keyword& k, Constraint* out);
  Result<Literals> named_literals(const JsonValue* schema, uint32_t scope, const std::string& name);
  // unevaluated.cpp
  struct Seen;
  struct SeenWalk;
  Result<Options> unevaluated(const Keyword& k, bool negated);
  Result<std::vector<Seen>> seen_in(const SeenWalk& walk, const JsonValue* schema, uint32_t scope);
  Status see_itself(const SeenWalk& walk, const JsonValue* schema, uint32_t scope, Seen* seen);
  Result<std::vector<Seen>> seen_both(const std::vector<Seen>& a, const std::vector<Seen>& b);
  static bool leads_items(const JsonValue* schema, const std::string& key);
  static bool leads_members(const JsonValue* schema, const std::string& key);
  using SharedTerm = std::shared_ptr<const NumberTerm>;
  Result<SharedTerm> number_term(const Keyword& k);

  SchemaDocument& document_;
  const SchemaOptions& options_;
  SchemaReport& report_;
  static std::vector<NumberLiteral> number_literals(const Clause& clause);
  Result<bool> are_patterns(const Dfa& strings);
  Result<SharedDfa> meet(std::vector<std::pair<const Dfa*, bool>> all);
  bool clash(const Clause& clause, std::string_view what);
  void join_multiples(std::vector<std::pair<const NumberTerm*, bool>>* all);
  // values.cpp
  Result<SharedDfa> each_number_once(const Dfa& numbers);
  Result<bool> has_values(JsonType type, const Clause& clause, uint32_t count);
  Result<bool> has_members(const Clause& clause, uint32_t count);

  JsonValue always_ = JsonValue::of_bool(true);
  JsonValue never_ = JsonValue::of_bool(false);  // the schema that no value satisfies
  std::string conflict_;
  mutable bool refused_ = false;  // set by refuse(), so that the current error names its position
  uint64_t work_ = 0;
  int depth_ = 0;
  const JsonValue& keep(JsonValue value);
  /// How many distinct string automata and number terms were given before this one.
  uint32_t met_before(const void* automaton);

  std::deque<JsonValue> made_;
  std::unordered_map<const void*, uint32_t> order_;  // of met_before()
  std::vector<Literals> anys_;                       // of any_of()
  std::map<const JsonValue*, Literal> exact_;
  std::map<std::string, SharedDfa> patterns_;
  std::map<std::string, SharedDfa> formats_;
  std::map<const Dfa*, std::string> format_names_;             // of the automata in formats_
  std::map<std::string, SharedDfa> plain_formats_;             // null: as in formats_
  std::map<SharedDfa, SharedDfa> styled_numbers_;              // of plain_numbers_of()
  std::map<std::vector<std::string>, SharedDfa> plain_lists_;  // of plain_list_of()
  std::map<SharedDfa, SharedDfa> styled_strings_;              // of plain_strings_of()
  std::map<const JsonValue*, SharedDfa> sets_;                 // by the value of a keyword
  std::map<std::vector<std::pair<const Dfa*, bool>>, SharedDfa> met_;  // of all these, or not
  std::map<Literals, bool> empty_;
  SharedDfa any_string_;
  SharedDfa plain_patterns_;
  SharedDfa plain_numbers_;
  std::map<std::string, SharedTerm> terms_;  // by keyword and value
  std::map<const JsonValue*, SharedTerm> value_terms_;
  std::vector<SharedTerm> joined_;  // kept, so that their addresses stay unique
  std::map<std::pair<uint64_t, int64_t>, SharedTerm> multiples_;  // of join_multiples()
  std::map<std::vector<std::pair<const NumberTerm*, bool>>, SharedDfa> numbers_;
  std::map<std::pair<SharedDfa, SharedDfa>, SharedDfa> products_;  // of numbers that both have
};

}  // namespace gen::grammar
