// SPDX-License-Identifier: Apache-2.0
// Counts valid values, see clause_maker.h.
#include <algorithm>
#include <utility>

#include "grammar/expression/dfa_builder.h"
#include "grammar/json/plain_number.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/clause_maker.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

using What = Constraint::Kind;

constexpr size_t kFewNumbers = 32;  // that no keyword lists
constexpr uint32_t kMaxSized = 4096;
// Characters beyond the length of the shortest string.
constexpr uint32_t kFewLengths = 32;
constexpr uint32_t kManyLengths = 512;
constexpr int kMaxDeep = 3;  // nesting of members
// One text per number.
constexpr const char* kPlainNumbers = "0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\\.[0-9]*[1-9]";

}  // namespace

Result<ClauseMaker::SharedDfa> ClauseMaker::each_number_once(const Dfa& numbers) {
  if (plain_numbers_ == nullptr) {
    Expressions expressions(options_.automata.building);
    GEN_ASSIGN(const ExprId parsed,
               parse_regex(kPlainNumbers, RegexMatch::kWhole, expressions, options_.automata));
    GEN_ASSIGN(Dfa plain, build_dfa(expressions, parsed, options_.automata));
    plain_numbers_ = std::make_shared<const Dfa>(std::move(plain));
  }
  GEN_ASSIGN(Dfa once, combine(numbers, *plain_numbers_, Both::kAnd, options_.automata));
  return SharedDfa(std::make_shared<const Dfa>(std::move(once)));
}

Result<bool> ClauseMaker::few_values(const Literals& literals, size_t most,
                                     std::vector<const JsonValue*>* out) {
  const auto add = [&](const JsonValue* value) {
    const bool known = std::any_of(out->begin(), out->end(), [&](const JsonValue* other) {
      return json_equal(*other, *value);
    });
    if (!known) out->push_back(value);
    return out->size() <= most;
  };
  const auto own = [&](JsonValue value) {
    made_.push_back(std::move(value));
    return add(&made_.back());
  };
  for (int t = 0; t < 7; ++t) {
    const auto type = static_cast<JsonType>(t);
    GEN_ASSIGN(const std::vector<Clause> all, clauses(type, literals));
    for (const Clause& clause : all) {
      if (type == JsonType::kNull || type == JsonType::kFalse || type == JsonType::kTrue) {
        JsonValue value;
        value.type = type;
        if (!own(std::move(value))) return false;
        continue;
      }
      bool found = false;
      for (const Literal literal : clause.done) {
        if (literal.negated || found) continue;
        const Draft draft = document_.draft_of(literal.schema);
        if (draft <= Draft::k7 && literal.schema->find("$ref") != nullptr) continue;
        const JsonValue* values = literal.schema->find("enum");
        const JsonValue* single = literal.schema->find("const");
        if (draft == Draft::k4) single = nullptr;
        found = values != nullptr || single != nullptr;
        if (single != nullptr && single->type == type && !add(single)) return false;
        if (single != nullptr || values == nullptr) continue;
        for (const JsonValue& value : values->items) {
          if (value.type == type && !add(&value)) return false;
        }
      }
      if (found) continue;
      if (type == JsonType::kNumber) {
        GEN_ASSIGN(const SharedDfa numbers, numbers_of(clause));
        if (numbers == nullptr) return false;
        GEN_ASSIGN(const SharedDfa once, each_number_once(*numbers));
        std::vector<std::string> texts;
        if (!finite_strings(*once, std::min(most, kFewNumbers), &texts)) return false;
        for (std::string& text : texts) {
          JsonValue value;
          value.type = JsonType::kNumber;
          value.text = std::move(text);
          if (!own(std::move(value))) return false;
        }
        continue;
      }
      if (type != JsonType::kString) return false;
      GEN_ASSIGN(const SharedDfa strings, strings_of(clause));
      std::vector<std::string> texts;
      if (strings == nullptr || !finite_strings(*strings, most, &texts)) return false;
      for (std::string& text : texts) {
        if (!own(JsonValue::of_string(std::move(text)))) return false;
      }
    }
  }
  return true;
}

Result<bool> ClauseMaker::has_values(const Literals& given, uint32_t count) {
  bool never = false;
  const Literals literals = normal(given, &never);
  if (never) return count == 0;
  if (depth_ >= kMaxDeep) return false;
  ++depth_;
  bool enough = false;
  for (int t = 0; t < 7 && !enough; ++t) {
    const auto type = static_cast<JsonType>(t);
    auto made = clauses(type, literals);
    if (!made.ok()) {
      --depth_;
      return made.status();
    }
    for (size_t i = 0; i < made->size() && !enough; ++i) {
      const auto here = has_values(type, (*made)[i], count);
      if (!here.ok()) {
        --depth_;
        return here.status();
      }
      enough = here.value();
    }
  }
  --depth_;
  if (enough) return true;
  std::vector<const JsonValue*> values;
  GEN_ASSIGN(const bool few, few_values(literals, count, &values));
  if (!few) return false;
  for (const JsonValue* value : values) {
    Literals exact = literals;
    exact.push_back(exactly(*value));
    GEN_ASSIGN(const bool empty, is_empty(exact));
    if (!empty) --count;
    if (count == 0) return true;
  }
  return false;
}

Result<bool> ClauseMaker::has_values(JsonType type, const Clause& clause, uint32_t count) {
  const Lengths size = size_of(clause);
  std::vector<std::string> texts;
  switch (type) {
    case JsonType::kNumber: {
      GEN_ASSIGN(SharedDfa numbers, numbers_of(clause));
      const uint32_t digits = options_.style.digits;
      const bool short_ones = digits != 0 && digits != kUnbounded;
      if (numbers == nullptr) {
        if (!short_ones) return true;
        numbers = std::make_shared<const Dfa>(plain_numbers(PlainNumbers::within(digits)));
      } else if (short_ones && options_.style.plain) {
        GEN_ASSIGN(numbers, plain_numbers_of(clause, numbers));
      }
      GEN_ASSIGN(const SharedDfa once, each_number_once(*numbers));
      return !finite_strings(*once, count, &texts) || texts.size() >= count;
    }
    case JsonType::kString: {
      GEN_ASSIGN(SharedDfa strings, strings_of(clause));
      if (strings == nullptr) {
        if (size.max > 1 && count < kMaxSized) return true;
        strings = any_string();
      }
      const uint64_t shortest = std::max(size.min, lengths_of(*strings).min);
      if (size.max == kUnbounded) {
        if (size.min > kMaxSized) return false;
        GEN_ASSIGN(const Dfa all, with_length(*strings, size, options_.automata));
        return !finite_strings(all, count, &texts) || texts.size() >= count;
      }
      // Short strings usually suffice, and take fewer states.
      for (const uint32_t more : {kFewLengths, kManyLengths, kMaxSized}) {
        const uint64_t longest =
            std::min<uint64_t>(size.max, std::min<uint64_t>(shortest + more, kMaxSized));
        const Lengths these = {size.min, static_cast<uint32_t>(longest)};
        GEN_ASSIGN(const Dfa both, with_length(*strings, these, options_.automata));
        texts.clear();
        if (!finite_strings(both, count, &texts) || texts.size() >= count) return true;
        if (longest == std::min(size.max, kMaxSized)) break;
      }
      return false;
    }
    case JsonType::kArray: {
      // Only the first item.
      if (size.max == 0 || size.min > 1) return false;
      Literals first;
      for (const Constraint& one : clause.constraints) {
        if (one.kind == What::kContains || one.kind == What::kSomeBehind) return false;
        if (one.kind == What::kItem) first.insert(first.end(), one.rest.begin(), one.rest.end());
        if (one.kind != What::kItems) continue;
        if (!one.literals.empty()) {
          first.push_back(one.literals[0]);
        } else {
          first.insert(first.end(), one.rest.begin(), one.rest.end());
        }
      }
      return has_values(first, count);
    }
    case JsonType::kObject:
      return has_members(clause, count);
    default:
      return false;
  }
}

// A member that may have that many values, or any name.
Result<bool> ClauseMaker::has_members(const Clause& clause, uint32_t count) {
  const Lengths size = size_of(clause);
  std::vector<std::string> required;
  std::vector<std::string> names;
  bool open = true;
  for (const Constraint& one : clause.constraints) {
    switch (one.kind) {
      case What::kRequired:
        required.push_back(one.name);
        names.push_back(one.name);
        break;
      case What::kMembers:
        open = open && one.schema->find("patternProperties") == nullptr;
        if (const JsonValue* properties = one.schema->find("properties")) {
          for (const auto& [name, member] : properties->members) names.push_back(name);
        }
        break;
      case What::kOthers: {
        GEN_ASSIGN(const bool none, is_empty(one.rest));
        // Whether several schemas can hold together is not examined.
        open = open && !none && (one.rest.empty() || one.rest[0].schema->is(JsonType::kTrue));
        break;
      }
      case What::kSize:
      case What::kAbsent:
      case What::kMember:
        break;
      default:
        return false;
    }
  }
  std::sort(required.begin(), required.end());
  required.erase(std::unique(required.begin(), required.end()), required.end());
  const bool room = size.max == kUnbounded || size.max > required.size();
  if (open && room) return true;
  for (const std::string& name : names) {
    const bool must = std::binary_search(required.begin(), required.end(), name);
    if (!must && !room) continue;
    GEN_ASSIGN(const Literals literals, member_literals(clause, name));
    GEN_ASSIGN(const bool enough, has_values(literals, count));
    if (enough) return true;
  }
  return false;
}

}  // namespace gen::grammar
