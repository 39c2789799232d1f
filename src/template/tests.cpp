// SPDX-License-Identifier: Apache-2.0
// Tests: the names that may follow `is`.
#include "base/utf8.h"
#include "template/arguments.h"
#include "template/text_filters.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

bool is_integer(const Value& value) noexcept {
  return value.is(Kind::kInt) || value.is(Kind::kBigInt);
}

Result<Value> defined(const Call& call) { return Value::of(!call[0].is(Kind::kUndefined)); }
Result<Value> undefined(const Call& call) { return Value::of(call[0].is(Kind::kUndefined)); }
Result<Value> none(const Call& call) { return Value::of(call[0].is(Kind::kNone)); }
Result<Value> boolean(const Call& call) { return Value::of(call[0].is(Kind::kBool)); }
Result<Value> is_true(const Call& call) {
  return Value::of(call[0].is(Kind::kBool) && call[0].truth);
}
Result<Value> is_false(const Call& call) {
  return Value::of(call[0].is(Kind::kBool) && !call[0].truth);
}
Result<Value> integer(const Call& call) { return Value::of(is_integer(call[0])); }
Result<Value> floating(const Call& call) { return Value::of(call[0].is(Kind::kFloat)); }
Result<Value> number(const Call& call) { return Value::of(call[0].is_number()); }
Result<Value> string(const Call& call) { return Value::of(call[0].is(Kind::kString)); }
Result<Value> mapping(const Call& call) { return Value::of(call[0].is(Kind::kDict)); }

Result<Value> sequence(const Call& call) {
  const Value& of = call[0];
  const bool row = of.is(Kind::kSequence) && of.sequence().form <= Form::kRange;
  return Value::of(row || of.is(Kind::kString) || of.is(Kind::kDict) || of.is(Kind::kUndefined));
}

Result<Value> iterable(const Call& call) {
  const Value& of = call[0];
  return Value::of(of.is(Kind::kSequence) || of.is(Kind::kString) || of.is(Kind::kDict) ||
                   of.is(Kind::kUndefined) || of.is(Kind::kLoop));
}

// An undefined value counts as callable; calling it is an error.
Result<Value> callable(const Call& call) {
  switch (call[0].kind) {
    case Kind::kUndefined:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kJoiner:
    case Kind::kBlock:
      return Value::of(true);
    default:
      return Value::of(false);
  }
}

Result<Value> cased(const Call& call, CharacterClass wanted, CharacterClass other) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  bool any = false;
  for (size_t at = 0; at < of.view().size();) {
    const uint32_t c = utf8_next(of.view(), &at);
    if (in_class(other, c) || in_class(CharacterClass::kTitle, c)) return Value::of(false);
    any |= in_class(wanted, c);
  }
  return Value::of(any);
}

Result<Value> lower(const Call& call) {
  return cased(call, CharacterClass::kLower, CharacterClass::kUpper);
}
Result<Value> upper(const Call& call) {
  return cased(call, CharacterClass::kUpper, CharacterClass::kLower);
}

Result<Value> escaped(const Call& call) {
  return Value::of(call[0].is(Kind::kString) && call[0].string().markup);
}

Result<Value> of_parity(const Call& call, int64_t wanted) {
  if (call[0].is(Kind::kBigInt)) return Value::of(call[0].view().back() % 2 == wanted);
  GEN_ASSIGN(const Value rest,
             arithmetic(call.evaluator, Operator::kModulo, call[0], Value::of(int64_t{2})));
  return Value::of(equal(rest, Value::of(wanted)));
}

Result<Value> odd(const Call& call) { return of_parity(call, 1); }
Result<Value> even(const Call& call) { return of_parity(call, 0); }

Result<Value> divisible(const Call& call) {
  GEN_ASSIGN(const Value rest, arithmetic(call.evaluator, Operator::kModulo, call[0], call[1]));
  return Value::of(equal(rest, Value::of(int64_t{0})));
}

Result<Value> same_as(const Call& call) {
  const Value& a = call[0];
  const Value& b = call[1];
  if (a.kind != b.kind) return Value::of(false);
  switch (a.kind) {
    case Kind::kNone:
      return Value::of(true);
    case Kind::kBool:
    case Kind::kInt:
      return Value::of(equal(a, b));
    case Kind::kFloat:
    case Kind::kUndefined:
      return Value::of(false);
    default:
      return Value::of(a.object == b.object);
  }
}

Result<Value> filter(const Call& call) {
  return Value::of(call[0].is(Kind::kString) && find_filter(call[0].view()) != nullptr);
}
Result<Value> test(const Call& call) {
  return Value::of(call[0].is(Kind::kString) && find_test(call[0].view()) != nullptr);
}

Result<Value> eq(const Call& call) {
  return call.evaluator.compare(Operator::kEqual, call[0], call[1]);
}
Result<Value> ne(const Call& call) {
  return call.evaluator.compare(Operator::kNotEqual, call[0], call[1]);
}
Result<Value> lt(const Call& call) {
  return call.evaluator.compare(Operator::kLess, call[0], call[1]);
}
Result<Value> le(const Call& call) {
  return call.evaluator.compare(Operator::kLessEqual, call[0], call[1]);
}
Result<Value> gt(const Call& call) {
  return call.evaluator.compare(Operator::kGreater, call[0], call[1]);
}
Result<Value> ge(const Call& call) {
  return call.evaluator.compare(Operator::kGreaterEqual, call[0], call[1]);
}
Result<Value> in(const Call& call) {
  return call.evaluator.compare(Operator::kIn, call[0], call[1]);
}

constexpr Builtin kTests[] = {
    {"!=", ne, 1, false, {"b"}},
    {"<", lt, 1, false, {"b"}},
    {"<=", le, 1, false, {"b"}},
    {"==", eq, 1, false, {"b"}},
    {">", gt, 1, false, {"b"}},
    {">=", ge, 1, false, {"b"}},
    {"boolean", boolean},
    {"callable", callable},
    {"defined", defined},
    {"divisibleby", divisible, 1, false, {"num"}},
    {"eq", eq, 1, false, {"b"}},
    {"equalto", eq, 1, false, {"b"}},
    {"escaped", escaped},
    {"even", even},
    {"false", is_false},
    {"filter", filter},
    {"float", floating},
    {"ge", ge, 1, false, {"b"}},
    {"greaterthan", gt, 1, false, {"b"}},
    {"gt", gt, 1, false, {"b"}},
    {"in", in, 1, false, {"seq"}},
    {"integer", integer},
    {"iterable", iterable},
    {"le", le, 1, false, {"b"}},
    {"lessthan", lt, 1, false, {"b"}},
    {"lower", lower},
    {"lt", lt, 1, false, {"b"}},
    {"mapping", mapping},
    {"ne", ne, 1, false, {"b"}},
    {"none", none},
    {"number", number},
    {"odd", odd},
    {"sameas", same_as, 1, false, {"other"}},
    {"sequence", sequence},
    {"string", string},
    {"test", test},
    {"true", is_true},
    {"undefined", undefined},
    {"upper", upper},
};

}  // namespace

std::span<const Builtin> all_tests() noexcept { return kTests; }

const Builtin* find_test(std::string_view name) noexcept { return find_in(kTests, name); }

}  // namespace gen::templates
