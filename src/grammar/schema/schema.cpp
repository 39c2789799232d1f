// SPDX-License-Identifier: Apache-2.0
// From schemas to expressions, see schema.h: a rule for each set of literals that some value must
// satisfy, which contains the clauses of each type.
#include "grammar/schema/schema.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "grammar/expression/analysis.h"
#include "grammar/json/json.h"
#include "grammar/schema/builders.h"
#include "grammar/schema/clause_maker.h"
#include "grammar/schema/number_dfa.h"
#include "grammar/schema/pattern_texts.h"
#include "grammar/schema/string_dfa.h"
#include "grammar/schema/string_texts.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxUnited = 4096;        // states of automata that are united
constexpr uint32_t kMaxTextLength = 4096;  // of strings that other keywords also constrain

// Whether it requires items that differ.
bool asks_for_unique(const JsonValue& value) {
  const JsonValue* unique = value.find("uniqueItems");
  if (unique != nullptr && unique->is(JsonType::kTrue)) return true;
  return std::any_of(value.items.begin(), value.items.end(), asks_for_unique) ||
         std::any_of(value.members.begin(), value.members.end(),
                     [](const auto& member) { return asks_for_unique(member.second); });
}

class SchemaBuilder {
 public:
  SchemaBuilder(SchemaDocument& document, const SchemaOptions& options, Expressions& to,
                SchemaReport* report)
      : to_(to),
        options_(options),
        maker_(document, options, report),
        texts_(to, options.style.plain) {
    json_.to = &to;
    items_watched_ = options.watched && (options.resolver != nullptr || options.among_others ||
                                         asks_for_unique(document.root()));
    report->items |= items_watched_;
    json_.space = json_space(to, options.style);
    json_.character = options.style.plain ? plain_character(to) : json_character(to);
    json_.comma = json_.all({json_.byte(','), json_.space});
    json_.colon = json_.all({json_.space, json_.byte(':'), json_.space});
    json_.strings = [this](const Dfa& strings) {
      return texts_.texts_of(strings, options_.automata);
    };
    json_.patterns = [this] { return patterns_of(true); };
    json_.key = [this](const std::string& name) { return key(name); };
    if (options.form != nullptr) {
      json_.relax = [this, report](const JsonValue* schema, const char* what) {
        // What no keyword describes has no place.
        const std::string pointer =
            schema == nullptr ? "values of any type" : maker_.document().pointer_of(schema);
        const std::string line = (pointer.empty() ? kRoot : pointer) + ": " + what;
        auto& all = report->relaxed;
        if (std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
      };
    }
  }

  Result<ExprId> run(const JsonValue& root) {
    const Literals literals = {{&root, false, maker_.document().enter(0, &root)}};
    GEN_ASSIGN(const ExprId all, value({options_.form, options_.watched}, literals));
    // Members and items are queued, to avoid recursion.
    while (!open_.empty()) {
      const Literals& first = open_.front().literals;
      GEN_TRY(maker_.spend(first.empty() ? nullptr : first[0].schema, 1));
      const Open next = std::move(open_.front());
      open_.pop_front();
      GEN_ASSIGN(const ExprId body, body_of(parts_of(next.in), next.literals));
      to_.define(next.rule, body);
    }
    if (!may_match(to_, all)) {
      maker_.forget();
      GEN_TRY(maker_.is_empty(literals));
      const std::string& why = maker_.conflict();
      return error(Code::kGrammar, "%.400s", why.empty() ? "#: no value is valid" : why.c_str());
    }
    if (options_.form != nullptr || !options_.space_around) return all;
    const ExprId behind = options_.style.one_line ? Expressions::kEmpty : json_.space;
    return json_.all({json_.space, all, behind});
  }

  [[nodiscard]] ClauseMaker& maker() noexcept { return maker_; }

 private:
  using In = ValueForm::Inside;

  struct Open {
    RuleId rule;
    In in;
    Literals literals;
  };

  const JsonParts& parts_of(In in) {
    const auto [place, added] = parts_.try_emplace({in.form, in.watched}, json_);
    if (!added) return place->second;
    JsonParts& made = place->second;
    const ValueForm* const form = made.form = in.form;
    made.watched = in.watched && items_watched_;
    made.names_watched = in.watched;
    if (form != nullptr) made.space = Expressions::kEmpty;
    made.item = [this, in, form](const Literals& literals) {
      return value(form != nullptr ? form->inside_array() : in, literals);
    };
    made.member = [this, in, form](const std::string* name, const Literals& literals) {
      return value(form != nullptr ? form->inside_object(name) : in, literals);
    };
    return made;
  }

  ExprId named(ExprId body) {
    const RuleId rule = to_.add_rule();
    to_.define(rule, body);
    return to_.rule(rule);
  }

  Result<ExprId> value(In in, const Literals& given) {
    bool never = false;
    Literals literals = maker_.normal(given, &never);
    if (never) return Expressions::kNever;
    auto& of_form = known_[{in.form, in.watched}];
    const auto [known, added] = of_form.try_emplace(literals, 0);
    if (!added) return known->second;
    const RuleId rule = to_.add_rule();
    known->second = to_.rule(rule);
    open_.push_back({rule, in, std::move(literals)});
    return known->second;
  }

  Result<ExprId> key(const std::string& name) {
    const auto known = keys_.find(name);
    if (known != keys_.end()) return known->second;
    return keys_[name] = texts_.texts_of(name);
  }

  Result<ExprId> body_of(const JsonParts& parts, const Literals& literals) {
    std::vector<ExprId> ways;
    static constexpr std::string_view kWords[] = {"null", "false", "true"};
    for (int t = 0; t < 7; ++t) {
      const auto type = static_cast<JsonType>(t);
      GEN_ASSIGN(const std::vector<Clause> clauses, maker_.clauses(type, literals));
      if (clauses.empty()) continue;
      if (type == JsonType::kNumber) {
        auto numbers = numbers_of(clauses);
        if (!numbers.ok()) return maker_.placed(numbers.status(), type, clauses[0]);
        ways.push_back(parts.form != nullptr ? parts.form->number(*numbers) : *numbers);
        continue;
      }
      if (t < static_cast<int>(JsonType::kNumber)) {
        const auto word = static_cast<size_t>(t);
        ways.push_back(parts.form != nullptr ? parts.form->words()[word]
                                             : to_.literal(kWords[word]));
        continue;
      }
      for (const Clause& clause : clauses) {
        auto texts = type == JsonType::kString  ? strings_of(parts, clause)
                     : type == JsonType::kArray ? array_expression(parts, maker_, clause)
                                                : object_expression(parts, maker_, clause);
        if (!texts.ok()) return maker_.placed(texts.status(), type, clause);
        ways.push_back(*texts);
      }
    }
    return to_.choice(ways);
  }

  Result<ExprId> numbers_of(std::vector<Clause> clauses) {
    if (clauses.size() > 1) {
      GEN_ASSIGN(clauses, maker_.join_lists(std::move(clauses)));
    }
    // Many large automata are read in parallel: their union would be as large as all of them.
    std::vector<ExprId> ways;
    std::vector<Dfa> parts;
    size_t n_states = 0;
    const auto unite_parts = [&]() -> Status {
      GEN_ASSIGN(Dfa all, unite(std::move(parts), options_.automata));
      GEN_TRY(keep_digits_short(&all));
      const ExprId texts = expression_of(to_, all);
      ways.push_back(named(texts));
      parts.clear();
      n_states = 0;
      return {};
    };
    std::vector<ClauseMaker::SharedDfa> all;  // in the order of clauses, without duplicates
    for (const Clause& clause : clauses) {
      ClauseMaker::SharedDfa some = options_.style.plain ? maker_.plain_list_of(clause) : nullptr;
      if (some != nullptr) {
        if (std::find(all.begin(), all.end(), some) == all.end()) all.push_back(std::move(some));
        continue;
      }
      GEN_ASSIGN(some, maker_.numbers_of(clause));
      if (some == nullptr) return any_number();  // which limits digits itself
      if (options_.style.plain) {
        GEN_ASSIGN(some, maker_.plain_numbers_of(clause, some));
      }
      if (std::find(all.begin(), all.end(), some) == all.end()) all.push_back(some);
    }
    const auto known = numbers_.find(all);
    if (known != numbers_.end()) return known->second;
    for (const ClauseMaker::SharedDfa& some : all) {
      if (!parts.empty() && n_states + some->states.size() > kMaxUnited) GEN_TRY(unite_parts());
      parts.push_back(*some);
      n_states += some->states.size();
    }
    GEN_TRY(unite_parts());
    return numbers_[all] = to_.choice(ways);
  }

  Status keep_digits_short(Dfa* numbers) const {
    const JsonStyle& style = options_.style;
    if (style.digits == kUnbounded || style.plain) return {};
    GEN_ASSIGN(*numbers,
               combine(*numbers, short_digits(style.digits), Both::kAnd, options_.automata));
    return {};
  }

  ExprId any_number() {
    if (any_number_ == 0) any_number_ = json_number(to_, options_.style);
    return any_number_;
  }

  Result<ExprId> patterns_of(bool empty) {
    ExprId& known = patterns_[empty ? 1 : 0];
    if (known != 0) return known;
    GEN_ASSIGN(const ExprId texts, pattern_texts(texts_, to_, empty, options_.automata));
    return known = named(texts);
  }

  // Strings in the form of their own.
  Result<ExprId> strings_of(const ValueForm& form, const JsonParts& parts, const Clause& clause) {
    GEN_ASSIGN(ClauseMaker::SharedDfa strings, maker_.strings_of(clause));
    for (const Constraint& one : clause.constraints) {
      if (one.kind == Constraint::Kind::kPattern) parts.relax(one.schema, "the format regex");
    }
    if (strings == nullptr) {
      strings = maker_.any_string();
    } else if (options_.style.plain) {
      GEN_ASSIGN(strings, maker_.plain_strings_of(clause, strings));
    }
    GEN_ASSIGN(Dfa written, form.writable(*strings));
    GEN_ASSIGN(const Sized sized,
               with_size(clause, std::make_shared<const Dfa>(std::move(written))));
    if (sized.strings->empty()) return Expressions::kNever;
    GEN_ASSIGN(const ExprId texts, form.text_of(*sized.strings, sized.most));
    return named(texts);
  }

  Result<ExprId> strings_of(const JsonParts& parts, const Clause& clause) {
    if (parts.form != nullptr) return strings_of(*parts.form, parts, clause);
    GEN_ASSIGN(ClauseMaker::SharedDfa strings, maker_.strings_of(clause));
    const Lengths size = ClauseMaker::size_of(clause);
    GEN_ASSIGN(const bool patterns, maker_.must_be_patterns(clause, strings));
    if (patterns) return patterns_of(size.min == 0);
    if (strings != nullptr && !strings->empty() && strings->states[0].final) {
      GEN_ASSIGN(const Dfa others,
                 combine(*maker_.any_string(), *strings, Both::kNot, options_.automata));
      if (others.empty()) strings = nullptr;
    }
    if (strings == nullptr) {
      return named(json_.all(
          {json_.byte('"'), to_.repeat(json_.character, size.min, size.max), json_.byte('"')}));
    }
    ClauseMaker::SharedDfa plain;
    if (options_.style.plain) {
      GEN_ASSIGN(plain, maker_.plain_strings_of(clause, strings));
    }
    Sized sized;
    if (plain != nullptr) {
      GEN_ASSIGN(sized, with_size(clause, std::move(plain)));
    }
    if (sized.strings == nullptr || sized.strings->empty()) {
      GEN_ASSIGN(sized, with_size(clause, std::move(strings)));
    }
    const auto known = strings_.find({sized.strings.get(), sized.most});
    if (known != strings_.end()) return known->second;
    GEN_ASSIGN(const ExprId texts, texts_.texts_of(*sized.strings, options_.automata, sized.most));
    kept_.push_back(sized.strings);
    return strings_[{sized.strings.get(), sized.most}] = named(texts);
  }

  // Strings with a maximum number of characters.
  struct Sized {
    ClauseMaker::SharedDfa strings;
    uint32_t most = kUnbounded;
  };

  // The strings that have the length required by the clause.
  Result<Sized> with_size(const Clause& clause, ClauseMaker::SharedDfa strings) {
    Lengths size = ClauseMaker::size_of(clause);
    const Lengths lengths = lengths_of(*strings);
    const bool above = lengths.min >= size.min;
    const bool below = lengths.max <= size.max;
    if (above && below) return Sized{std::move(strings)};
    if (above) size.min = 0;
    if (below) size.max = kUnbounded;
    // A state per count is fast as long as there are few.
    const bool countable = !below && size.min <= kMaxTextLength;
    if (countable && takes_many_states(*strings, size.max, options_.counted_states)) {
      ClauseMaker::SharedDfa some = strings;
      if (size.min > 0) {
        GEN_ASSIGN(Dfa made, with_length(*strings, {size.min, kUnbounded}, options_.automata));
        some = std::make_shared<const Dfa>(std::move(made));
      }
      const bool fits = !some->empty() && lengths_of(*some).min <= size.max;
      if (fits && fewest_are_shortest(*some)) return Sized{std::move(some), size.max};
    }
    const uint32_t most = size.max != kUnbounded ? size.max : size.min;
    if (most > kMaxTextLength) {
      return maker_.refuse(clause.done[0].schema, below ? "minLength" : "maxLength",
                           "lengths above 4096 together with other keywords");
    }
    GEN_ASSIGN(Dfa both, with_length(*strings, size, options_.automata));
    return Sized{std::make_shared<const Dfa>(std::move(both))};
  }

  Expressions& to_;
  const SchemaOptions& options_;
  ClauseMaker maker_;
  StringTexts texts_;
  bool items_watched_ = false;
  JsonParts json_;  // what all forms share
  std::map<std::pair<const ValueForm*, bool>, JsonParts> parts_;
  std::map<std::pair<const ValueForm*, bool>, std::map<Literals, ExprId>> known_;
  std::map<std::string, ExprId> keys_;
  std::deque<Open> open_;
  ExprId any_number_ = 0;
  std::array<ExprId, 2> patterns_ = {};                            // without the empty pattern,
                                                                   // with it
  std::vector<ClauseMaker::SharedDfa> kept_;                       // so that addresses stay unique
  std::map<std::vector<ClauseMaker::SharedDfa>, ExprId> numbers_;  // of any of them
  std::map<std::pair<const Dfa*, uint32_t>, ExprId> strings_;      // and their limit
};

}  // namespace

Result<ExprId> schema_expression(std::string_view text, const SchemaOptions& options,
                                 Expressions& to, SchemaReport* report) {
  SchemaReport unused;
  if (report == nullptr) report = &unused;
  GEN_ASSIGN(
      SchemaDocument document,
      SchemaDocument::read(text, options.resolver, {options.ignored, options.one_of_as_any_of},
                           &report->relaxed, options.automata.building));
  SchemaBuilder builder(document, options, to, report);
  return builder.run(document.root());
}

}  // namespace gen::grammar
