// SPDX-License-Identifier: Apache-2.0
// JSON as expressions, see json.h.
#include "grammar/json/json.h"

#include <initializer_list>
#include <span>
#include <string_view>

#include "grammar/expression/characters.h"
#include "grammar/expression/dfa.h"
#include "grammar/json/plain_number.h"

namespace gen::grammar {
namespace {

class Json {
 public:
  Json(Expressions& to, const JsonStyle& style) : to_(to), style_(style) {}

  ExprId value() {
    const RuleId value = to_.add_rule();
    const ExprId space = json_space(to_, style_);
    const ExprId string = this->string();
    const ExprId item = all({space, to_.rule(value), space});
    const ExprId member = all({space, string, space, one_of(":"), item});
    const ExprId array = all({one_of("["), any({list_of(item), space}), one_of("]")});
    const ExprId object = all({one_of("{"), any({list_of(member), space}), one_of("}")});
    to_.define(value, any({object, array, string, json_number(to_, style_), to_.literal("true"),
                           to_.literal("false"), to_.literal("null")}));
    return style_.one_line ? all({space, to_.rule(value)}) : item;
  }

  ExprId number() {
    const ExprId digit = one_of("0123456789");
    const uint32_t most = style_.digits;
    const uint32_t further = most == kUnbounded ? most : most - 1;
    const ExprId digits = to_.repeat(digit, 1, most);
    const ExprId whole =
        any({one_of("0"), all({one_of("123456789"), to_.repeat(digit, 0, further)})});
    const ExprId fraction = all({one_of("."), digits});
    const ExprId exponent = all({one_of("eE"), to_.repeat(one_of("+-"), 0, 1), digits});
    return named(all({to_.repeat(one_of("-"), 0, 1), whole, to_.repeat(fraction, 0, 1),
                      to_.repeat(exponent, 0, 1)}));
  }

  ExprId named(ExprId body) {
    const RuleId rule = to_.add_rule();
    to_.define(rule, body);
    return to_.rule(rule);
  }

  ExprId plain_character() { return any({raw(), all({one_of("\\"), one_of("\"\\bfnrt")})}); }

 private:
  ExprId all(std::initializer_list<ExprId> parts) {
    return to_.sequence(std::span(parts.begin(), parts.size()));
  }
  ExprId any(std::initializer_list<ExprId> parts) {
    return to_.choice(std::span(parts.begin(), parts.size()));
  }
  ExprId one_of(std::string_view bytes) {
    ByteSet set;
    for (const char c : bytes) set.add(static_cast<uint8_t>(c));
    return to_.bytes(set);
  }

  ExprId list_of(ExprId item) {
    return all({item, to_.repeat(all({one_of(","), item}), 0, kUnbounded)});
  }

  ExprId raw() {
    CharSet raw;
    raw.add(0x20, 0x21);
    raw.add(0x23, 0x5B);
    raw.add(0x5D, kLastCharacter);
    return characters(to_, raw);
  }

  ExprId string() {
    const ExprId hex = one_of("0123456789abcdefABCDEF");
    const ExprId unicode = all({one_of("u"), to_.repeat(hex, 4, 4)});
    const ExprId escape = all({one_of("\\"), any({one_of("\"\\/bfnrt"), unicode})});
    const ExprId character = style_.plain ? plain_character() : any({raw(), escape});
    return named(all({one_of("\""), to_.repeat(character, 0, kUnbounded), one_of("\"")}));
  }

  Expressions& to_;
  const JsonStyle style_;
};

}  // namespace

ExprId any_json_expression(Expressions& to, const JsonStyle& style) {
  return Json(to, style).value();
}

ExprId json_space(Expressions& to, const JsonStyle& style) {
  ByteSet set = ByteSet::one(' ');
  if (!style.one_line) {
    for (const char c : {'\t', '\n', '\r'}) set.add(static_cast<uint8_t>(c));
  }
  return to.repeat(to.bytes(set), 0, style.space);
}

ExprId plain_character(Expressions& to) { return Json(to, {}).plain_character(); }

ExprId json_number(Expressions& to, const JsonStyle& style) {
  Json json(to, style);
  if (!style.plain) return json.number();
  return json.named(expression_of(to, plain_numbers(PlainNumbers::within(style.digits))));
}

}  // namespace gen::grammar
