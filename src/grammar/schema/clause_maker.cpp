// SPDX-License-Identifier: Apache-2.0
// Clauses from literals, see clause_maker.h; keywords.cpp says what each keyword asks for.
#include "grammar/schema/clause_maker.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "grammar/schema/number_values.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

constexpr int kMaxLookAhead = 3;  // members of members, when a clause is asked whether it is empty
constexpr uint32_t kItemsLookedAt = 4;
constexpr uint64_t kDoneForOne = 1024;  // literals that are looked through for one unit of work
constexpr size_t kDecidedPerStep = 16;
constexpr uint64_t kWorkPerAlternative = 64;  // in nodes looked at

bool has_literal(const Literals& list, Literal literal) {
  return std::find(list.begin(), list.end(), literal) != list.end();
}

}  // namespace

Status ClauseMaker::refuse(const JsonValue* schema, std::string_view keyword,
                           std::string_view why) const {
  refused_ = true;
  std::string pointer = document_.pointer_of(schema);
  if (!keyword.empty()) pointer += "/" + std::string(keyword);
  if (pointer.empty()) pointer = kRoot;
  std::string reason(why);
  for (std::string* text : {&pointer, &reason}) std::replace(text->begin(), text->end(), '\0', ' ');
  return error(Code::kGrammar, "%.300s: %.400s", pointer.c_str(), reason.c_str());
}

Status ClauseMaker::placed(const Status& why, const JsonValue* schema,
                           std::string_view keyword) const {
  return refused_ ? why : refuse(schema, keyword, why.message());
}

Status ClauseMaker::placed(const Status& why, JsonType type, const Clause& clause) const {
  if (refused_) return why;
  using Names = std::vector<const char*>;
  const Names keywords = type == JsonType::kNumber
                             ? Names{"multipleOf",       "minimum", "maximum", "exclusiveMinimum",
                                     "exclusiveMaximum", "enum",    "const"}
                         : type == JsonType::kString
                             ? Names{"pattern", "format", "maxLength", "minLength", "enum", "const"}
                         : type == JsonType::kArray
                             ? Names{"contains", "items", "prefixItems", "maxItems"}
                             : Names{"patternProperties", "propertyNames", "properties",
                                     "additionalProperties", "required"};
  for (const char* keyword : keywords) {
    for (const Literal literal : clause.done) {
      if (literal.schema->find(keyword) != nullptr) {
        return refuse(literal.schema, keyword, why.message());
      }
    }
  }
  return refuse(clause.done.empty() ? nullptr : clause.done[0].schema, "", why.message());
}

Status ClauseMaker::spend(const JsonValue* schema, uint64_t work) {
  work_ += work;
  Building* const building = options_.automata.building;
  const bool goes_on = gen::grammar::goes_on(building, kWorkPerAlternative * work);
  if (goes_on && work_ <= options_.work) return {};
  if (!goes_on && building->status().code() == Code::kCancelled) return building->status();
  std::string_view keyword;
  for (const char* one : {"oneOf", "anyOf", "allOf", "not", "if", "dependentSchemas",
                          "dependencies", "patternProperties", "properties"}) {
    if (keyword.empty() && schema != nullptr && schema->find(one) != nullptr) keyword = one;
  }
  if (!goes_on) return refuse(schema, keyword, building->status().message());
  return refuse(schema, keyword,
                "the schema has more than " + std::to_string(options_.work) + " alternatives");
}

ClauseMaker::Quick ClauseMaker::quick(JsonType type, Literal literal) const {
  const JsonValue& schema = *literal.schema;
  if (schema.is_boolean()) {
    return schema.is(JsonType::kTrue) != literal.negated ? Quick::kAlways : Quick::kNever;
  }
  if (!schema.is(JsonType::kObject)) return Quick::kOpen;  // refused where it is taken apart
  if (schema.members.empty()) return literal.negated ? Quick::kNever : Quick::kAlways;
  const bool ref_alone = document_.draft_of(&schema) <= Draft::k7 && schema.find("$ref") != nullptr;
  const JsonValue* types = ref_alone ? nullptr : schema.find("type");
  if (types == nullptr) return Quick::kOpen;
  static constexpr std::string_view kNames[] = {"null",   "boolean", "boolean", "number",
                                                "string", "array",   "object"};
  const auto known = [](const JsonValue& name) {
    return name.text == "integer" ||
           std::find(std::begin(kNames), std::end(kNames), name.text) != std::end(kNames);
  };
  // What is wrong there is told where it is taken apart.
  const bool fine = types->is(JsonType::kArray)
                        ? std::all_of(types->items.begin(), types->items.end(), known)
                        : known(*types);
  if (!fine) return Quick::kOpen;
  const auto fits = [&](const JsonValue& name) {
    return name.text == kNames[static_cast<size_t>(type)] ||
           (type == JsonType::kNumber && name.text == "integer");
  };
  const bool any = types->is(JsonType::kArray)
                       ? std::any_of(types->items.begin(), types->items.end(), fits)
                       : fits(*types);
  if (any) return Quick::kOpen;
  return literal.negated ? Quick::kAlways : Quick::kNever;
}

Literals ClauseMaker::normal(Literals literals, bool* never) const {
  std::sort(literals.begin(), literals.end());
  literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
  *never = false;
  Literals kept;
  for (const Literal literal : literals) {
    const JsonValue& schema = *literal.schema;
    const bool empty = schema.is(JsonType::kObject) && schema.members.empty();
    const bool plain = schema.is_boolean() || empty;
    if (plain) {
      *never |= schema.is(JsonType::kFalse) != literal.negated;
    } else {
      *never |= has_literal(literals, !literal);
      kept.push_back(literal);
    }
  }
  return kept;
}

Result<std::vector<Clause>> ClauseMaker::clauses(JsonType type, const Literals& literals) {
  std::vector<Clause> made;
  Clause clause;
  clause.open = literals;
  GEN_TRY(expand(type, std::move(clause), &made));
  return made;
}

Result<bool> ClauseMaker::is_empty(const Literals& given) {
  bool never = false;
  const Literals literals = normal(given, &never);
  if (never) return true;
  if (literals.empty() || depth_ >= kMaxLookAhead) return false;
  if (const auto known = empty_.find(literals); known != empty_.end()) return known->second;
  ++depth_;
  bool empty = true;
  for (int t = 0; t < 7 && empty; ++t) {
    const auto type = static_cast<JsonType>(t);
    const bool out = std::any_of(literals.begin(), literals.end(), [&](Literal literal) {
      return quick(type, literal) == Quick::kNever;
    });
    if (out) continue;
    auto made = clauses(type, literals);
    if (!made.ok()) {
      --depth_;
      return made.status();
    }
    empty = made->empty();
  }
  --depth_;
  empty_[literals] = empty;
  return empty;
}

// Takes apart what is open. False if no value fits.
Result<bool> ClauseMaker::decide(JsonType type, Clause* clause) {
  const JsonValue* first = clause->open.empty() ? nullptr : clause->open[0].schema;
  // A clause is copied for each way on, with all that it has decided.
  GEN_TRY(spend(first, 1 + clause->constraints.size() + clause->choices.size() +
                           clause->done.size() / kDecidedPerStep));
  GEN_ASSIGN(const bool alive, take_apart(type, clause));
  if (!alive) return false;
  return possible(type, *clause);
}

Status ClauseMaker::expand(JsonType type, Clause clause, std::vector<Clause>* out) {
  // Where there is a choice, and which way comes next. They are many in schemas that refer to each
  // other, and a caller's stack may be small.
  struct Fork {
    Clause clause;
    Options options;
    size_t next = 0;
  };
  std::vector<Fork> forks;
  for (;;) {
    GEN_ASSIGN(const bool alive, decide(type, &clause));
    if (alive && clause.choices.empty()) {
      out->push_back(std::move(clause));
    } else if (alive) {
      const auto least =
          std::min_element(clause.choices.begin(), clause.choices.end(),
                           [](const Options& a, const Options& b) { return a.size() < b.size(); });
      Options options = std::move(*least);
      clause.choices.erase(least);
      forks.push_back({std::move(clause), std::move(options)});
    }
    while (!forks.empty() && forks.back().next == forks.back().options.size()) forks.pop_back();
    if (forks.empty()) return {};
    Fork& from = forks.back();
    const Option& option = from.options[from.next++];
    if (from.next < from.options.size()) {
      clause = from.clause;
    } else {
      clause = std::move(from.clause);
    }
    clause.open = option.literals;
    clause.constraints.insert(clause.constraints.end(), option.constraints.begin(),
                              option.constraints.end());
  }
}

// Until nothing is open. False if it can have no values.
Result<bool> ClauseMaker::take_apart(JsonType type, Clause* clause) {
  do {
    while (!clause->open.empty()) {
      const Literal literal = clause->open.back();
      clause->open.pop_back();
      // Those taken apart before are looked through.
      GEN_TRY(spend(literal.schema, clause->done.size() / kDoneForOne));
      if (has_literal(clause->done, literal)) continue;
      if (has_literal(clause->done, !literal)) return false;
      clause->done.push_back(literal);
      const Quick known = quick(type, literal);
      if (known == Quick::kAlways) continue;
      if (known == Quick::kNever) return false;
      GEN_ASSIGN(const bool alive,
                 literal.negated ? fail(type, literal, clause) : hold(type, literal, clause));
      if (!alive) return false;
    }
    // What has been decided since may leave less to choose.
    std::vector<Options> choices = std::move(clause->choices);
    clause->choices.clear();
    for (Options& options : choices) {
      if (!put(type, std::move(options), clause)) return false;
    }
  } while (!clause->open.empty());
  return true;
}

// Adds a choice; false if none is left.
bool ClauseMaker::put(JsonType type, Options options, Clause* clause) {
  Options kept;
  for (Option& option : options) {
    bool never = false;
    Literals literals;
    for (const Literal literal : option.literals) {
      if (has_literal(clause->done, literal)) continue;
      const Quick known = quick(type, literal);
      never |= known == Quick::kNever || has_literal(clause->done, !literal);
      if (known == Quick::kOpen) literals.push_back(literal);
    }
    if (never) continue;
    option.literals = std::move(literals);
    if (option.literals.empty() && option.constraints.empty()) return true;
    kept.push_back(std::move(option));
  }
  if (kept.empty()) return false;
  if (kept.size() == 1) {
    clause->open.insert(clause->open.end(), kept[0].literals.begin(), kept[0].literals.end());
    clause->constraints.insert(clause->constraints.end(), kept[0].constraints.begin(),
                               kept[0].constraints.end());
  } else {
    clause->choices.push_back(std::move(kept));
  }
  return true;
}

Result<bool> ClauseMaker::hold(JsonType type, Literal literal, Clause* clause) {
  const JsonValue* schema = literal.schema;
  if (!schema->is(JsonType::kObject)) return refuse(schema, "", "no schema");
  const Draft draft = document_.draft_of(schema);
  const bool ref_alone = draft <= Draft::k7 && schema->find("$ref") != nullptr;
  for (const auto& [key, value] : schema->members) {
    if (ref_alone && key != "$ref") continue;
    auto all = positive({type, schema, key, value, literal.scope, draft});
    if (!all.ok()) return placed(all.status(), schema, key);
    for (Options& options : *all) {
      if (put(type, std::move(options), clause)) continue;
      const bool any =
          value.is(JsonType::kTrue) || (value.is(JsonType::kObject) && value.members.empty());
      if (key == "not" && any && conflict_.empty()) {
        conflict_ =
            document_.pointer_of(schema) + "/not: no value is valid: it excludes all values";
      }
      return false;
    }
  }
  return true;
}

Result<bool> ClauseMaker::fail(JsonType type, Literal literal, Clause* clause) {
  const JsonValue* schema = literal.schema;
  if (!schema->is(JsonType::kObject)) return refuse(schema, "", "no schema");
  const Draft draft = document_.draft_of(schema);
  const bool ref_alone = draft <= Draft::k7 && schema->find("$ref") != nullptr;
  Options all;
  for (const auto& [key, value] : schema->members) {
    if (ref_alone && key != "$ref") continue;
    auto options = negative({type, schema, key, value, literal.scope, draft});
    if (!options.ok()) return placed(options.status(), schema, key);
    all.insert(all.end(), std::make_move_iterator(options->begin()),
               std::make_move_iterator(options->end()));
  }
  return put(type, std::move(all), clause);
}

Lengths ClauseMaker::size_of(const Clause& clause) {
  Lengths size;
  for (const Constraint& one : clause.constraints) {
    if (one.kind == Constraint::Kind::kItem) size.min = std::max(size.min, one.min + 1);
    if (one.kind != Constraint::Kind::kSize) continue;
    size.min = std::max(size.min, one.min);
    size.max = std::min(size.max, one.max);
  }
  return size;
}

// Whether there may be such a value.
Result<bool> ClauseMaker::possible(JsonType type, const Clause& clause) {
  auto made = may_be(type, clause);
  if (!made.ok()) return placed(made.status(), type, clause);
  return made;
}

Result<bool> ClauseMaker::may_be(JsonType type, const Clause& clause) {
  const Lengths size = size_of(clause);
  if (size.min > size.max) {
    return clash(clause, type == JsonType::kString  ? "more characters than there may be"
                         : type == JsonType::kArray ? "more items than there may be"
                                                    : "more members than there may be");
  }
  if (type == JsonType::kString) {
    GEN_ASSIGN(const SharedDfa strings, strings_of(clause));
    if (strings == nullptr) return true;
    if (strings->empty()) return clash(clause, "no string fits all keywords");
    const Lengths lengths = lengths_of(*strings);
    if (lengths.min <= size.max && lengths.max >= size.min) return true;
    return clash(clause, "no string of this length fits the other keywords");
  }
  if (type == JsonType::kNumber) {
    if (some_number_holds(number_literals(clause))) return true;
    GEN_ASSIGN(const SharedDfa numbers, numbers_of(clause));
    if (numbers == nullptr || !numbers->empty()) return true;
    return clash(clause, "no number fits all keywords");
  }
  if (depth_ >= kMaxLookAhead) return true;
  if (type == JsonType::kArray) {
    for (uint32_t i = 0; i < std::min(size.min, kItemsLookedAt); ++i) {
      Literals literals;
      for (const Constraint& one : clause.constraints) {
        if (one.kind == Constraint::Kind::kItems) {
          if (i < one.literals.size()) {
            literals.push_back(one.literals[i]);
          } else {
            literals.insert(literals.end(), one.rest.begin(), one.rest.end());
          }
        }
        if (one.kind == Constraint::Kind::kItem && one.min == i) {
          literals.insert(literals.end(), one.rest.begin(), one.rest.end());
        }
      }
      GEN_ASSIGN(const bool empty, is_empty(literals));
      if (empty) return clash(clause, "item " + std::to_string(i) + " can have no value");
    }
    return true;
  }
  if (type != JsonType::kObject) return true;
  std::vector<std::string> required;
  for (const Constraint& one : clause.constraints) {
    if (one.kind == Constraint::Kind::kRequired) required.push_back(one.name);
  }
  std::sort(required.begin(), required.end());
  required.erase(std::unique(required.begin(), required.end()), required.end());
  if (required.size() > size.max) return clash(clause, "more required members than there may be");
  if (required.size() > MemberSet::kBits) {
    return refuse(clause.done[0].schema, "required", "more than 256 names in one object");
  }
  for (const std::string& name : required) {
    GEN_ASSIGN(const Literals literals, member_literals(clause, name));
    GEN_ASSIGN(const bool empty, is_empty(literals));
    if (empty) return clash(clause, "the required member " + name + " can have no value");
  }
  return true;
}

// Notes the first reason why a clause has no values.
bool ClauseMaker::clash(const Clause& clause, std::string_view what) {
  if (conflict_.empty()) {
    conflict_ = clause.done.empty() ? "" : document_.pointer_of(clause.done[0].schema);
    if (conflict_.empty()) conflict_ = kRoot;
    conflict_ += ": no value is valid: " + std::string(what);
  }
  return false;
}

// What properties and patternProperties ask of a member.
Result<Literals> ClauseMaker::named_literals(const JsonValue* schema, uint32_t scope,
                                             const std::string& name) {
  Literals made;
  if (const JsonValue* properties = schema->find("properties")) {
    if (const JsonValue* member = properties->find(name)) made.push_back(literal(*member, scope));
  }
  if (const JsonValue* patterns = schema->find("patternProperties")) {
    for (const auto& [text, member] : patterns->members) {
      GEN_ASSIGN(const SharedDfa names, pattern(schema, "patternProperties", text));
      if (accepts(*names, name)) made.push_back(literal(member, scope));
    }
  }
  return made;
}

Result<Literals> ClauseMaker::member_literals(const Clause& clause, const std::string& name) {
  Literals made;
  for (const Constraint& one : clause.constraints) {
    switch (one.kind) {
      case Constraint::Kind::kAbsent:
        if (one.name == name) made.push_back({&never_});
        break;
      case Constraint::Kind::kMember:
        if (one.name == name) made.insert(made.end(), one.rest.begin(), one.rest.end());
        break;
      case Constraint::Kind::kNames: {
        GEN_ASSIGN(const bool fits, fits_name(one.rest, name));
        if (!fits) made.push_back({&never_});
        break;
      }
      case Constraint::Kind::kMembers: {
        GEN_ASSIGN(const Literals some, named_literals(one.schema, one.scope, name));
        made.insert(made.end(), some.begin(), some.end());
        break;
      }
      case Constraint::Kind::kOthers: {
        bool named = false;
        for (const JsonValue* schema : one.named) {
          GEN_ASSIGN(const Literals some, named_literals(schema, 0, name));
          named |= !some.empty();
        }
        if (!named) made.insert(made.end(), one.rest.begin(), one.rest.end());
        break;
      }
      default:
        break;
    }
  }
  return made;
}

const JsonValue& ClauseMaker::keep(JsonValue value) {
  made_.push_back(std::move(value));
  document_.number(&made_.back());
  return made_.back();
}

uint32_t ClauseMaker::met_before(const void* automaton) {
  return order_.try_emplace(automaton, static_cast<uint32_t>(order_.size())).first->second;
}

Literal ClauseMaker::any_of(Literals literals) {
  JsonValue schema = JsonValue::object();
  schema.add(kAnyOf, JsonValue::of_number(anys_.size()));
  anys_.push_back(std::move(literals));
  return {&keep(std::move(schema))};
}

Literal ClauseMaker::exactly(const JsonValue& value) {
  if (const auto known = exact_.find(&value); known != exact_.end()) return known->second;
  JsonValue schema = JsonValue::object();
  if (value.is(JsonType::kObject)) {
    schema.add("type", JsonValue::of_string("object"));
    JsonValue properties = JsonValue::object();
    JsonValue required = JsonValue::array();
    for (const auto& [name, member] : value.members) {
      properties.add(name, JsonValue::object().add("enum", JsonValue::array({member})));
      required.items.push_back(JsonValue::of_string(name));
    }
    schema.add("properties", std::move(properties));
    schema.add("required", std::move(required));
    schema.add("additionalProperties", JsonValue::of_bool(false));
  } else if (value.is(JsonType::kArray)) {
    schema.add("type", JsonValue::of_string("array"));
    JsonValue items = JsonValue::array();
    for (const JsonValue& item : value.items) {
      items.items.push_back(JsonValue::object().add("enum", JsonValue::array({item})));
    }
    schema.add("minItems", JsonValue::of_number(value.items.size()));
    schema.add("maxItems", JsonValue::of_number(value.items.size()));
    // Understood in every draft.
    schema.add(kExactItems, std::move(items));
  } else {
    schema.add("enum", JsonValue::array({value}));
  }
  return exact_[&value] = {&keep(std::move(schema))};
}

}  // namespace gen::grammar
