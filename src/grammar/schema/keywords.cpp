// SPDX-License-Identifier: Apache-2.0
// The meaning of keywords: each yields constraints and literals or, negated, the ways to violate
// it.
#include <algorithm>
#include <utility>

#include "grammar/expression/dfa_builder.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/clause_maker.h"
#include "grammar/schema/format.h"
#include "grammar/schema/number_dfa.h"
#include "grammar/schema/string_dfa.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

using What = Constraint::Kind;

Options always() { return {Option()}; }
Options never() { return {}; }
Options truth(bool holds) { return holds ? always() : never(); }

Options one(Constraint constraint) {
  Option option;
  option.constraints.push_back(std::move(constraint));
  return {std::move(option)};
}
Options one(Literal literal) { return {{{literal}, {}}}; }

Constraint size(uint32_t min, uint32_t max) {
  Constraint made;
  made.kind = What::kSize;
  made.min = min;
  made.max = max;
  return made;
}

Constraint of_name(What kind, const std::string& name) {
  Constraint made;
  made.kind = kind;
  made.name = name;
  return made;
}

Constraint of_number(std::shared_ptr<const NumberTerm> term, bool negated) {
  Constraint made;
  made.kind = What::kNumber;
  made.number = std::move(term);
  made.negated = negated;
  return made;
}

Constraint with_rest(What kind, Literal literal) {
  Constraint made;
  made.kind = kind;
  made.rest = {literal};
  return made;
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

bool is_unevaluated(std::string_view key) {
  return key == "unevaluatedProperties" || key == "unevaluatedItems";
}

}  // namespace

bool ClauseMaker::leads_members(const JsonValue* schema, const std::string& key) {
  for (const char* name : {"properties", "patternProperties", "additionalProperties"}) {
    if (schema->find(name) != nullptr) return key == name;
  }
  return false;
}

bool ClauseMaker::leads_items(const JsonValue* schema, const std::string& key) {
  for (const char* name : {"prefixItems", "items", "additionalItems"}) {
    if (schema->find(name) != nullptr) return key == name;
  }
  return false;
}

Result<Literals> ClauseMaker::schema_list(const Keyword& k) {
  if (!k.value.is(JsonType::kArray) || k.value.items.empty()) {
    return refuse(k.schema, k.key, "not a list of schemas");
  }
  Literals made;
  for (const JsonValue& item : k.value.items) made.push_back(literal(item, k.scope));
  return made;
}

Result<uint32_t> ClauseMaker::count_of(const Keyword& k) {
  if (!k.value.is(JsonType::kNumber)) return refuse(k.schema, k.key, "not a number");
  const auto read = decimal_of(k.value.text);
  if (!read.ok()) return refuse(k.schema, k.key, read.status().message());
  const Decimal& number = read.value();
  if (number.negative || !number.is_integer()) {
    return refuse(k.schema, k.key, "not a whole number from 0");
  }
  if (number.exponent > 9) return kUnbounded - 1;
  std::string digits = number.digits;
  digits.resize(static_cast<size_t>(number.exponent), '0');
  return digits.empty() ? 0U : static_cast<uint32_t>(std::stoul(digits));
}

Result<Options> ClauseMaker::type_options(const Keyword& k, bool negated) {
  std::vector<const JsonValue*> names;
  if (k.value.is(JsonType::kArray)) {
    for (const JsonValue& item : k.value.items) names.push_back(&item);
  } else {
    names.push_back(&k.value);
  }
  bool integer = false;
  bool fits = false;
  for (const JsonValue* name : names) {
    const std::string& text = name->text;
    if (!name->is(JsonType::kString) ||
        !is_one_of(text, {"null", "boolean", "number", "integer", "string", "array", "object"})) {
      return refuse(
          k.schema, k.key,
          name->is(JsonType::kString) ? "no type is called " + quoted(text) : "a type is a string");
    }
    switch (k.type) {
      case JsonType::kNull:
        fits |= text == "null";
        break;
      case JsonType::kFalse:
      case JsonType::kTrue:
        fits |= text == "boolean";
        break;
      case JsonType::kNumber:
        fits |= text == "number";
        integer |= text == "integer";
        break;
      case JsonType::kString:
        fits |= text == "string";
        break;
      case JsonType::kArray:
        fits |= text == "array";
        break;
      case JsonType::kObject:
        fits |= text == "object";
        break;
    }
  }
  if (fits || !integer) return truth(fits != negated);
  const bool plain = k.draft == Draft::k4;
  SharedTerm& whole = terms_[plain ? "plain" : "integer"];
  if (whole == nullptr) {
    NumberTerm term;
    term.kind = plain ? NumberTerm::Kind::kPlain : NumberTerm::Kind::kInteger;
    whole = std::make_shared<const NumberTerm>(std::move(term));
  }
  return one(of_number(whole, negated));
}

// enum and const.
Result<Options> ClauseMaker::value_options(const Keyword& k, bool negated) {
  std::vector<const JsonValue*> values;
  if (k.key == "const") {
    values.push_back(&k.value);
  } else {
    if (!k.value.is(JsonType::kArray)) return refuse(k.schema, k.key, "not a list");
    for (const JsonValue& item : k.value.items) values.push_back(&item);
  }
  std::erase_if(values, [&](const JsonValue* value) { return value->type != k.type; });
  if (values.empty()) return truth(negated);
  if (k.type == JsonType::kArray || k.type == JsonType::kObject) {
    Options options;
    Option all;
    for (const JsonValue* value : values) {
      const Literal literal = exactly(*value);
      options.push_back({{literal}, {}});
      all.literals.push_back({literal.schema, true});
    }
    return negated ? Options{std::move(all)} : std::move(options);
  }
  if (k.type != JsonType::kString && k.type != JsonType::kNumber) return truth(!negated);
  if (k.type == JsonType::kNumber) {
    SharedTerm& term = value_terms_[&k.value];
    if (term == nullptr) {
      std::vector<Decimal> numbers;
      for (const JsonValue* value : values) {
        auto number = decimal_of(value->text);
        if (!number.ok()) return refuse(k.schema, k.key, number.status().message());
        numbers.push_back(std::move(*number));
      }
      auto made = NumberTerm::one_of(std::move(numbers));
      if (!made.ok()) return refuse(k.schema, k.key, made.status().message());
      term = std::make_shared<const NumberTerm>(std::move(*made));
    }
    return one(of_number(term, negated));
  }
  SharedDfa& known = sets_[&k.value];
  if (known == nullptr) {
    std::vector<std::string> strings;
    for (const JsonValue* value : values) strings.push_back(value->text);
    known = std::make_shared<const Dfa>(string_set(strings));
  }
  Constraint made;
  made.dfa = known;
  made.negated = negated;
  return one(std::move(made));
}

Result<ClauseMaker::SharedTerm> ClauseMaker::number_term(const Keyword& k) {
  if (!k.value.is(JsonType::kNumber)) return refuse(k.schema, k.key, "not a number");
  const auto excluded = [&](const char* name) {
    const JsonValue* flag = k.schema->find(name);
    return k.draft == Draft::k4 && flag != nullptr && flag->is(JsonType::kTrue);
  };
  Bound bound = Bound::kAtLeast;
  if (k.key == "minimum" && excluded("exclusiveMinimum")) bound = Bound::kAbove;
  if (k.key == "exclusiveMinimum") bound = Bound::kAbove;
  if (k.key == "maximum") bound = excluded("exclusiveMaximum") ? Bound::kBelow : Bound::kAtMost;
  if (k.key == "exclusiveMaximum") bound = Bound::kBelow;
  const bool multiple = k.key == "multipleOf";
  SharedTerm& known =
      terms_[(multiple ? "*" : std::to_string(static_cast<int>(bound)) + " ") + k.value.text];
  if (known != nullptr) return known;
  auto number = decimal_of(k.value.text);
  if (!number.ok()) return refuse(k.schema, k.key, number.status().message());
  if (multiple && (number->digits.empty() || number->negative)) {
    return refuse(k.schema, k.key, "not a number above 0");
  }
  auto made = multiple ? NumberTerm::multiple(*number) : NumberTerm::bounded(*number, bound);
  if (!made.ok()) return refuse(k.schema, k.key, made.status().message());
  return known = std::make_shared<const NumberTerm>(std::move(*made));
}

// Keywords of numbers, strings and sizes.
Result<Options> ClauseMaker::scalar(const Keyword& k, bool negated, bool* known) {
  *known = true;
  const auto in_set = [&](const SharedDfa& set) {
    Constraint made;
    made.dfa = set;
    made.negated = negated;
    return one(std::move(made));
  };
  if (k.key == "type") return type_options(k, negated);
  const bool draft4 = k.draft == Draft::k4;
  if (k.key == "enum" || (k.key == "const" && !draft4)) return value_options(k, negated);
  if (draft4 && is_one_of(k.key, {"exclusiveMinimum", "exclusiveMaximum"})) {
    if (!k.value.is_boolean()) return refuse(k.schema, k.key, "not a boolean, as in draft 4");
    return truth(!negated);
  }
  if (is_one_of(k.key,
                {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})) {
    if (k.type != JsonType::kNumber) return truth(!negated);
    GEN_ASSIGN(SharedTerm term, number_term(k));
    return one(of_number(std::move(term), negated));
  }
  if (k.key == "pattern") {
    if (k.type != JsonType::kString) return truth(!negated);
    if (!k.value.is(JsonType::kString)) return refuse(k.schema, k.key, "not a string");
    GEN_ASSIGN(const SharedDfa set, pattern(k.schema, "pattern", k.value.text));
    return in_set(set);
  }
  if (k.key == "format") {
    if (k.type != JsonType::kString || !options_.assert_formats) return truth(!negated);
    if (!k.value.is(JsonType::kString)) return refuse(k.schema, k.key, "not a string");
    const auto tell = [&](const char* what) {
      const std::string note = document_.pointer_of(k.schema) + "/format: " + what + " left out";
      auto& told = report_.relaxed;
      if (std::find(told.begin(), told.end(), note) == told.end()) told.push_back(note);
    };
    // The format decides whether labels in Punycode are valid.
    if (k.value.text == "hostname" && k.draft >= Draft::k7) tell("labels with xn--");
    if (k.value.text == "regex") {
      tell("some back references, names of groups and ranges");
      Constraint made;
      made.kind = What::kPattern;
      made.negated = negated;
      made.schema = k.schema;
      return one(std::move(made));
    }
    // Host names differ between drafts.
    const char* drafts = k.draft >= Draft::k7 ? " 7" : " 4";
    const bool open = negated && k.value.text == "hostname";
    SharedDfa& set = formats_[k.value.text + drafts + (open ? " open" : "")];
    if (set != nullptr) return in_set(set);
    std::string text;
    const FormatKind kind = format_pattern(k.value.text, k.draft, open, &text);
    if (kind == FormatKind::kRefused) {
      return refuse(k.schema, k.key, "the format " + k.value.text + " is not supported");
    }
    if (kind == FormatKind::kUnknown) {
      auto& list = report_.unknown_formats;
      if (std::find(list.begin(), list.end(), k.value.text) == list.end()) {
        list.push_back(k.value.text);
      }
      return truth(!negated);
    }
    Expressions expressions(options_.automata.building);
    GEN_ASSIGN(const ExprId parsed,
               parse_regex(text, RegexMatch::kWhole, expressions, options_.automata));
    GEN_ASSIGN(Dfa dfa, build_dfa(expressions, parsed, options_.automata));
    set = std::make_shared<const Dfa>(std::move(dfa));
    format_names_[set.get()] = k.value.text;
    return in_set(set);
  }
  const auto sized = [&](JsonType type, std::string_view min, std::string_view max,
                         bool* mine) -> Result<Options> {
    *mine = k.key == min || k.key == max;
    if (!*mine || k.type != type) return truth(!negated);
    GEN_ASSIGN(const uint32_t count, count_of(k));
    if (k.key == max) {
      if (!negated) return one(size(0, count));
      return one(size(count + 1, kUnbounded));
    }
    if (!negated) return one(size(count, kUnbounded));
    return count == 0 ? never() : one(size(0, count - 1));
  };
  bool mine = false;
  GEN_ASSIGN(Options of_string, sized(JsonType::kString, "minLength", "maxLength", &mine));
  if (mine) return of_string;
  GEN_ASSIGN(Options of_array, sized(JsonType::kArray, "minItems", "maxItems", &mine));
  if (mine) return of_array;
  GEN_ASSIGN(Options of_object, sized(JsonType::kObject, "minProperties", "maxProperties", &mine));
  if (mine) return of_object;
  *known = false;
  return always();
}

Result<const JsonValue*> ClauseMaker::reference(const Keyword& k) {
  if (!k.value.is(JsonType::kString)) return refuse(k.schema, k.key, "not a string");
  GEN_ASSIGN(const JsonValue* target, document_.resolve(k.schema, k.value.text));
  if (target == nullptr) {
    return refuse(k.schema, k.key, "unresolved reference " + k.value.text.substr(0, 200));
  }
  if (k.key != "$ref") {
    const size_t hash = k.value.text.find('#');
    const bool dynamic = k.key == "$dynamicRef" && hash != std::string::npos;
    const std::string name = dynamic ? k.value.text.substr(hash + 1) : "";
    if (dynamic || k.key == "$recursiveRef") {
      target = document_.dynamic_target(target, name, k.scope);
    }
  }
  if (!target->is_boolean() && !target->is(JsonType::kObject)) {
    return refuse(k.schema, k.key, "leads to no schema");
  }
  return target;
}

Result<std::vector<Options>> ClauseMaker::dependencies(const Keyword& k) {
  std::vector<Options> all;
  if (!k.value.is(JsonType::kObject)) return refuse(k.schema, k.key, "not an object");
  for (const auto& [name, value] : k.value.members) {
    Options options = one(of_name(What::kAbsent, name));
    Option then;
    then.constraints.push_back(of_name(What::kRequired, name));
    if (value.is(JsonType::kArray) || (value.is(JsonType::kString) && k.key == "dependencies")) {
      std::vector<JsonValue> single = {value};
      for (const JsonValue& item : value.is(JsonType::kArray) ? value.items : single) {
        if (!item.is(JsonType::kString)) return refuse(k.schema, k.key, "not a list of names");
        then.constraints.push_back(of_name(What::kRequired, item.text));
      }
    } else {
      then.literals.push_back(literal(value, k.scope));
    }
    options.push_back(std::move(then));
    all.push_back(std::move(options));
  }
  return all;
}

// The schemas of items: of the first ones, and of all others.
Status ClauseMaker::items_of(const Keyword& k, Constraint* out) {
  const JsonValue* schema = k.schema;
  out->kind = What::kItems;
  out->schema = schema;
  const JsonValue* prefix = k.draft == Draft::k2020 ? schema->find("prefixItems") : nullptr;
  const JsonValue* items = schema->find("items");
  if (items != nullptr && items->is(JsonType::kArray)) {
    if (k.draft == Draft::k2020) return refuse(schema, "items", "a list, as before 2020-12");
    prefix = items;
    items = schema->find("additionalItems");
  }
  if (prefix != nullptr) {
    if (!prefix->is(JsonType::kArray)) return refuse(schema, "prefixItems", "not a list");
    for (const JsonValue& item : prefix->items) out->literals.push_back(literal(item, k.scope));
  }
  if (items != nullptr) out->rest.push_back(literal(*items, k.scope));
  return {};
}

Result<std::vector<Options>> ClauseMaker::positive_group(const Keyword& k, bool* known) {
  *known = true;
  using All = std::vector<Options>;
  const bool object = k.type == JsonType::kObject;
  const bool array = k.type == JsonType::kArray;
  if (is_one_of(k.key, {"properties", "patternProperties", "additionalProperties"})) {
    if (!object || !leads_members(k.schema, k.key)) return All();
    for (const char* name : {"properties", "patternProperties"}) {
      const JsonValue* value = k.schema->find(name);
      if (value != nullptr && !value->is(JsonType::kObject)) {
        return refuse(k.schema, name, "not an object");
      }
    }
    Options made = one(Constraint());
    Constraint& members = made[0].constraints[0];
    members.kind = What::kMembers;
    members.schema = k.schema;
    members.scope = k.scope;
    if (const JsonValue* others = k.schema->find("additionalProperties")) {
      Constraint rest = with_rest(What::kOthers, literal(*others, k.scope));
      rest.schema = k.schema;
      rest.named = {k.schema};
      made[0].constraints.push_back(std::move(rest));
    }
    return All{std::move(made)};
  }
  if (k.key == "required") {
    if (!object) return All();
    if (!k.value.is(JsonType::kArray)) return refuse(k.schema, k.key, "not a list of names");
    Option all;
    for (const JsonValue& item : k.value.items) {
      if (!item.is(JsonType::kString)) return refuse(k.schema, k.key, "not a list of names");
      all.constraints.push_back(of_name(What::kRequired, item.text));
    }
    return All{{std::move(all)}};
  }
  if (k.key == "propertyNames" && k.draft >= Draft::k6) {
    if (!object) return All();
    return All{one(with_rest(What::kNames, literal(k.value, k.scope)))};
  }
  const bool dependent = is_one_of(k.key, {"dependentRequired", "dependentSchemas"});
  // Later drafts split this keyword into two, and keep the old one.
  if ((dependent && k.draft >= Draft::k2019) || k.key == "dependencies") {
    if (!object) return All();
    return dependencies(k);
  }
  if (is_one_of(k.key, {"prefixItems", "items", "additionalItems"})) {
    if (!array || !leads_items(k.schema, k.key)) return All();
    Constraint made;
    GEN_TRY(items_of(k, &made));
    return All{one(std::move(made))};
  }
  if (k.key == kExactItems) {
    if (!array) return All();
    Constraint made;
    made.kind = What::kItems;
    for (const JsonValue& item : k.value.items) made.literals.push_back({&item});
    return All{one(std::move(made))};
  }
  if (k.key == "contains" && k.draft >= Draft::k6) {
    if (!array) return All();
    Constraint made = with_rest(What::kContains, literal(k.value, k.scope));
    made.min = 1;
    if (k.draft >= Draft::k2019) {
      if (const JsonValue* min = k.schema->find("minContains")) {
        GEN_ASSIGN(made.min, count_of({k.type, k.schema, "minContains", *min}));
      }
      if (const JsonValue* max = k.schema->find("maxContains")) {
        GEN_ASSIGN(made.max, count_of({k.type, k.schema, "maxContains", *max}));
      }
    }
    if (made.min > made.max) return All{never()};
    return All{one(std::move(made))};
  }
  if (k.key == "uniqueItems") {
    if (!k.value.is_boolean()) return refuse(k.schema, k.key, "not a boolean");
    if (!array || k.value.is(JsonType::kFalse)) return All();
    Constraint made;
    made.kind = What::kUnique;
    made.schema = k.schema;
    return All{one(std::move(made))};
  }
  *known = false;
  return All();
}

Result<std::vector<Options>> ClauseMaker::positive(const Keyword& k) {
  using All = std::vector<Options>;
  bool known = false;
  GEN_ASSIGN(Options options, scalar(k, false, &known));
  if (known) return All{std::move(options)};
  GEN_ASSIGN(All group, positive_group(k, &known));
  if (known) return group;
  if (k.key == "allOf") {
    GEN_ASSIGN(const Literals all, schema_list(k));
    return All{{{all, {}}}};
  }
  if (k.key == "anyOf" || (k.key == "oneOf" && options_.one_of_as_any_of)) {
    GEN_ASSIGN(const Literals all, schema_list(k));
    Options any;
    for (const Literal literal : all) any.push_back({{literal}, {}});
    return All{std::move(any)};
  }
  if (k.key == "oneOf") {
    GEN_ASSIGN(Options exactly_one, one_of(k));
    return All{std::move(exactly_one)};
  }
  if (k.key == "not") return All{one(literal(k.value, k.scope, true))};
  if (k.key == kAnyOf) {
    Options any;
    for (const Literal one : anys_[std::stoul(k.value.text)]) any.push_back({{one}, {}});
    return All{std::move(any)};
  }
  if (is_unevaluated(k.key) && k.draft >= Draft::k2019) {
    GEN_ASSIGN(Options made, unevaluated(k, false));
    return All{std::move(made)};
  }
  if (k.key == "if" && k.draft >= Draft::k7) {
    const JsonValue* then = k.schema->find("then");
    const JsonValue* other = k.schema->find("else");
    if (then == nullptr && other == nullptr) return All();
    const Literal condition = literal(k.value, k.scope);
    Options both = {{{condition}, {}}, {{!condition}, {}}};
    if (then != nullptr) both[0].literals.push_back(literal(*then, k.scope));
    if (other != nullptr) both[1].literals.push_back(literal(*other, k.scope));
    return All{std::move(both)};
  }
  const bool dynamic = (k.key == "$dynamicRef" && k.draft == Draft::k2020) ||
                       (k.key == "$recursiveRef" && k.draft == Draft::k2019);
  if (k.key == "$ref" || dynamic) {
    GEN_ASSIGN(const JsonValue* target, reference(k));
    return All{one(literal(*target, k.scope))};
  }
  return All();  // an annotation
}

Result<Options> ClauseMaker::negative_group(const Keyword& k, bool* known) {
  bool asks = false;
  GEN_ASSIGN(const std::vector<Options> all, positive_group(k, &asks));
  *known = asks;
  Options out;
  for (const Options& options : all) {
    if (options.empty()) return always();
    // For a dependency: the name exists, and its requirement does not hold.
    if (options.size() == 2) {
      const Option& then = options[1];
      const Constraint& name = then.constraints[0];
      for (size_t i = 1; i < then.constraints.size(); ++i) {
        out.push_back({{}, {name, of_name(What::kAbsent, then.constraints[i].name)}});
      }
      for (const Literal literal : then.literals) {
        out.push_back({{!literal}, {name}});
      }
      continue;
    }
    for (const Constraint& c : options[0].constraints) {
      switch (c.kind) {
        case What::kRequired:
          out.push_back({{}, {of_name(What::kAbsent, c.name)}});
          break;
        case What::kNames: {
          Constraint some = c;
          some.kind = What::kSomeName;
          some.rest[0] = !some.rest[0];
          out.push_back({{}, {std::move(some)}});
          break;
        }
        case What::kMembers: {
          if (const JsonValue* properties = c.schema->find("properties")) {
            for (const auto& [name, schema] : properties->members) {
              if (quick(JsonType::kNull, {&schema, true}) == Quick::kNever && schema.is_boolean()) {
                continue;
              }
              Constraint member = of_name(What::kMember, name);
              member.rest = {literal(schema, c.scope, true)};
              out.push_back({{}, {of_name(What::kRequired, name), std::move(member)}});
            }
          }
          const JsonValue* patterns = c.schema->find("patternProperties");
          if (patterns == nullptr) break;
          for (const auto& [text, schema] : patterns->members) {
            if (schema.is(JsonType::kTrue)) continue;
            Constraint member = with_rest(What::kSomeMember, literal(schema, c.scope, true));
            member.schema = c.schema;
            member.pattern = &text;
            out.push_back({{}, {std::move(member)}});
          }
          break;
        }
        case What::kOthers: {
          if (c.rest[0].schema->is(JsonType::kTrue)) break;
          Constraint member = c;
          member.kind = What::kSomeMember;
          member.rest = {!c.rest[0]};
          out.push_back({{}, {std::move(member)}});
          break;
        }
        case What::kItems: {
          for (size_t i = 0; i < c.literals.size(); ++i) {
            Constraint item = with_rest(What::kItem, !c.literals[i]);
            item.min = static_cast<uint32_t>(i);
            out.push_back({{}, {std::move(item)}});
          }
          for (const Literal rest : c.rest) {
            Constraint item = with_rest(What::kSomeBehind, !rest);
            item.min = static_cast<uint32_t>(c.literals.size());
            out.push_back({{}, {std::move(item)}});
          }
          break;
        }
        case What::kContains: {
          if (c.min > 0) {
            Constraint fewer = c;
            fewer.min = 0;
            fewer.max = c.min - 1;
            out.push_back({{}, {std::move(fewer)}});
          }
          if (c.max != kUnbounded) {
            Constraint more = c;
            more.min = c.max + 1;
            more.max = kUnbounded;
            out.push_back({{}, {std::move(more)}});
          }
          break;
        }
        case What::kUnique: {
          Constraint twice = c;
          twice.negated = true;
          out.push_back({{}, {std::move(twice)}});
          break;
        }
        default:
          return refuse(k.schema, k.key, "its negation is not supported");
      }
    }
  }
  return out;
}

Result<Options> ClauseMaker::negative(const Keyword& k) {
  bool known = false;
  GEN_ASSIGN(Options options, scalar(k, true, &known));
  if (known) return options;
  GEN_ASSIGN(Options group, negative_group(k, &known));
  if (known) return group;
  if (k.key == "allOf") {
    GEN_ASSIGN(const Literals all, schema_list(k));
    Options any;
    for (const Literal literal : all) any.push_back({{!literal}, {}});
    return any;
  }
  if (k.key == "anyOf" || k.key == "oneOf") {
    GEN_ASSIGN(Literals all, schema_list(k));
    Options made;
    if (k.key == "oneOf" && !options_.one_of_as_any_of) {
      GEN_ASSIGN(const std::vector<Alternative> some, alternatives(k, all));
      for (size_t i = 0; i < some.size(); ++i) {
        for (const size_t j : some[i].beside) {
          if (i < j) made.push_back({{some[i].literal, some[j].literal}, {}});
        }
      }
    }
    for (Literal& literal : all) literal = !literal;
    made.push_back({std::move(all), {}});
    return made;
  }
  if (k.key == "not") return one(literal(k.value, k.scope));
  if (k.key == kAnyOf) {
    Option none;
    for (const Literal one : anys_[std::stoul(k.value.text)]) none.literals.push_back(!one);
    return Options{std::move(none)};
  }
  if (is_unevaluated(k.key) && k.draft >= Draft::k2019) return unevaluated(k, true);
  GEN_ASSIGN(const std::vector<Options> all, positive(k));
  if (all.empty()) return never();  // an annotation
  if (k.key == "if") {
    Options made;
    for (const Option& option : all[0]) {
      if (option.literals.size() < 2) continue;
      made.push_back({{option.literals[0], !option.literals[1]}, {}});
    }
    return made;
  }
  const Literal target = all[0][0].literals[0];  // for a reference
  return one(!target);
}

}  // namespace gen::grammar
