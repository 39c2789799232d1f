// SPDX-License-Identifier: Apache-2.0
// The grammar of patterns, see pattern_texts.h. The parts between groups are automata
// (pattern_pieces.h).
#include "grammar/schema/pattern_texts.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/pattern_pieces.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz";
constexpr uint32_t kMaxCounted = 10;  // 0 to 9 groups
constexpr uint32_t kLetterPlaces = 2 * kMaxCounted;

}  // namespace

Result<ExprId> pattern_texts(StringTexts& texts, Expressions& to, bool empty, const DfaFuel& fuel) {
  const auto written = [&](std::initializer_list<const char*> strings) {
    const std::vector<std::string> list(strings.begin(), strings.end());
    return texts.parts_of(string_set(list), fuel);
  };
  const auto all = [&](std::initializer_list<ExprId> parts) {
    return to.sequence(std::span(parts.begin(), parts.size()));
  };
  const auto any = [&](std::initializer_list<ExprId> parts) {
    return to.choice(std::span(parts.begin(), parts.size()));
  };
  GEN_ASSIGN(const ExprId atom, texts.parts_of(pattern_atoms(), fuel));
  GEN_ASSIGN(const ExprId quantifier, texts.parts_of(pattern_quantifiers(), fuel));
  const Dfa naming = pattern_openings();
  GEN_ASSIGN(const ExprId named, texts.parts_of(naming, fuel));
  std::vector<std::string> by_letter;
  for (const char c : kAlphabet) by_letter.push_back("(?<" + std::string(1, c) + ">");
  GEN_ASSIGN(const Dfa long_naming, combine(naming, string_set(by_letter), Both::kNot, fuel));
  GEN_ASSIGN(const ExprId long_named, texts.parts_of(long_naming, fuel));
  std::vector<ExprId> named_by;
  std::vector<ExprId> back_to;
  for (const std::string& opening : by_letter) {
    const std::string reference = "\\k" + opening.substr(2);
    GEN_ASSIGN(named_by.emplace_back(), texts.parts_of(string_set({&opening, 1}), fuel));
    GEN_ASSIGN(back_to.emplace_back(), texts.parts_of(string_set({&reference, 1}), fuel));
  }
  std::vector<ExprId> back = {Expressions::kNever};  // by number of groups
  std::vector<std::string> references;
  for (uint32_t i = 1; i < kMaxCounted; ++i) {
    references.push_back("\\" + std::to_string(i));
    GEN_ASSIGN(back.emplace_back(), texts.parts_of(string_set(references), fuel));
  }
  GEN_ASSIGN(const ExprId apart, written({"|", "^", "$", "\\b", "\\B"}));
  GEN_ASSIGN(const ExprId digit, written({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  GEN_ASSIGN(const ExprId zero, written({"\\0"}));
  GEN_ASSIGN(const ExprId counted, written({"("}));
  GEN_ASSIGN(const ExprId uncounted, written({"(?:"}));
  GEN_ASSIGN(const ExprId look, written({"(?=", "(?!", "(?<=", "(?<!"}));
  GEN_ASSIGN(const ExprId close, written({")"}));
  const ExprId repeated = to.repeat(quantifier, 0, 1);
  // Patterns without a named group, and with one.
  const RuleId none = to.add_rule();
  const RuleId one = to.add_rule();
  const ExprId in_none = to.rule(none);
  const ExprId in_one = to.rule(one);
  // Bodies used in many places are called, not expanded inline.
  const auto called = [&](ExprId body) {
    const RuleId rule = to.add_rule(true);
    to.define(rule, body);
    return to.rule(rule);
  };
  const auto groups = [&](ExprId opening, ExprId body) {
    return called(all({opening, body, close, repeated}));
  };
  const auto looks = [&](ExprId body) { return all({look, body, close}); };
  const ExprId plain = called(any({all({atom, repeated}), apart, all({zero, quantifier}),
                                   groups(uncounted, in_none), looks(in_none)}));
  const ExprId counted_none = groups(counted, in_none);
  const ExprId uncounted_one = called(any({groups(uncounted, in_one), looks(in_one)}));
  const ExprId counted_one = groups(counted, in_one);
  const ExprId any_digit = called(all({digit, repeated}));

  // After \0 and a back reference no digit may follow: each position is therefore two nodes, the
  // second one for that. Node 0 is the start, without incoming edges.
  Diagram made;
  const auto add = [&](uint32_t from, uint32_t to_place, ExprId reads, bool before_digit = false) {
    made.transitions.push_back({from, 1 + 2 * to_place + (before_digit ? 1U : 0U), reads});
  };
  const auto begin = [&](uint32_t from, uint32_t place) {
    if (from == 0 || from % 2 == 1) add(from, place, any_digit);
    add(from, place, plain);
    add(from, place, zero, true);
  };
  const auto finish = [&](std::vector<bool> final) {
    made.final = std::move(final);
    return to.diagram(std::exchange(made, Diagram()));
  };
  // Inside groups: positions without a named group and with one.
  for (const uint32_t from : {0U, 1U, 2U}) {
    begin(from, 0);
    add(from, 0, counted_none);
  }
  to.define(none, finish({true, true, true}));
  for (const uint32_t from : {0U, 1U, 2U, 3U, 4U}) {
    const uint32_t place = from > 2 ? 1 : 0;
    begin(from, place);
    add(from, place, counted_none);
    if (place == 0) add(from, 1, any({groups(named, in_none), counted_one, uncounted_one}));
  }
  to.define(one, finish({false, false, false, true, true}));

  std::vector<ExprId> back_again;
  for (const ExprId reference : back) back_again.push_back(called(all({reference, quantifier})));
  std::vector<ExprId> by_name;
  for (const ExprId opening : named_by) by_name.push_back(groups(opening, in_none));
  for (ExprId& reference : back_to) reference = called(all({reference, repeated}));
  const ExprId long_or_counted = any({groups(long_named, in_none), counted_one});

  // Outside groups: positions by the number of counted groups (those that are not nested), without
  // a named group and with one; and for a name of one letter, which back references may name.
  for (uint32_t place = 0; place < kLetterPlaces + kAlphabet.size(); ++place) {
    const bool of_letter = place >= kLetterPlaces;
    const uint32_t count = of_letter ? 1 : place % kMaxCounted;
    const bool has_name = place >= kMaxCounted;
    const uint32_t more = of_letter ? place : place + (count + 1 < kMaxCounted ? 1 : 0);
    std::vector<uint32_t> nodes = {1 + 2 * place, 2 + 2 * place};
    if (place == 0) nodes.push_back(0);
    for (const uint32_t from : nodes) {
      begin(from, place);
      add(from, more, counted_none);
      if (count > 0) {
        add(from, place, back[count], true);
        add(from, place, back_again[count]);
      }
      if (of_letter) add(from, place, back_to[place - kLetterPlaces]);
      if (has_name) continue;
      add(from, kMaxCounted + more, long_or_counted);
      add(from, kMaxCounted + place, uncounted_one);
      for (uint32_t i = 0; i < kAlphabet.size(); ++i) {
        add(from, kLetterPlaces + i, by_name[i]);
      }
    }
  }
  std::vector<bool> final(1 + 2 * (kLetterPlaces + kAlphabet.size()), true);
  final[0] = empty;
  const ExprId whole = finish(std::move(final));
  const ExprId quote = to.bytes(ByteSet::one('"'));
  return all({quote, whole, quote});
}

}  // namespace gen::grammar
