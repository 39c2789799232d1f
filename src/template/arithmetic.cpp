// SPDX-License-Identifier: Apache-2.0
// Arithmetic and slices with Python's semantics; see evaluator.h.
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "template/evaluator.h"

namespace gen::templates {
namespace {

Status no_such(const char* verb, const Value& left, const Value& right) {
  if (left.is(Kind::kUndefined)) return undefined_error(left);
  if (right.is(Kind::kUndefined)) return undefined_error(right);
  return error(Code::kInvalidArgument, "%s and %s cannot be %s", type_name(left), type_name(right),
               verb);
}

bool is_integer(const Value& value) noexcept {
  return value.is(Kind::kInt) || value.is(Kind::kBool);
}

int64_t integer_of(const Value& value) noexcept {
  return value.is(Kind::kBool) ? value.truth : value.integer;
}

Status overflow() { return error(Code::kOutOfRange, "an integer beyond 64 bits"); }

Result<Value> power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return error(Code::kInvalidArgument, "division by zero");
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value::of(result);
}

Result<Value> integers(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return overflow();
      return Value::of(result);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow();
      return Value::of(result);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow();
      return Value::of(result);
    case Operator::kPower:
      return power(a, b);
    default:
      break;
  }
  if (b == 0) return error(Code::kInvalidArgument, "division by zero");
  if (op == Operator::kDivide) {
    return Value::of(static_cast<double>(a) / static_cast<double>(b));
  }
  if (b == -1) {  // the only divisor that can overflow
    if (op == Operator::kModulo) return Value::of(int64_t{0});
    if (a == INT64_MIN) return overflow();
    return Value::of(-a);
  }
  const int64_t rest = a % b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  if (op == Operator::kModulo) return Value::of(down ? rest + b : rest);
  return Value::of(a / b - (down ? 1 : 0));
}

Result<Value> float_power(double base, double exponent) {
  if (base == 0 && exponent < 0) return error(Code::kInvalidArgument, "division by zero");
  const double made = std::pow(base, exponent);
  if (std::isfinite(base) && std::isfinite(exponent)) {
    if (std::isnan(made)) {
      return error(Code::kUnsupported, "a negative number to a power that is not whole is complex");
    }
    if (std::isinf(made)) return error(Code::kInvalidArgument, "the power is out of range");
  }
  return Value::of(made);
}

Result<Value> floats(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::of(a + b);
    case Operator::kSubtract:
      return Value::of(a - b);
    case Operator::kMultiply:
      return Value::of(a * b);
    case Operator::kPower:
      return float_power(a, b);
    default:
      break;
  }
  if (b == 0) return error(Code::kInvalidArgument, "division by zero");
  if (op == Operator::kDivide) return Value::of(a / b);
  double rest = std::fmod(a, b);
  double times = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    times -= 1;
  }
  if (op == Operator::kModulo) return Value::of(rest);
  if (times == 0) return Value::of(std::copysign(0.0, a / b));
  const double whole = std::floor(times);
  return Value::of(times - whole > 0.5 ? whole + 1 : whole);
}

Result<Value> repeat(Evaluator& evaluator, const Value& what, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (what.is(Kind::kString)) {
    const Text& text = what.text();
    if (!text.empty() && static_cast<uint64_t>(times) > SIZE_MAX / 4 / text.size()) {
      return error(Code::kOutOfRange, "the template needs too much memory");
    }
    GEN_TRY(evaluator.heap().charge(static_cast<size_t>(times) * text.size()));
    Text made;
    for (int64_t i = 0; i < times && !text.empty(); ++i) made.append(text);
    return evaluator.heap().string(std::move(made), what.string().markup);
  }
  const Sequence& sequence = what.sequence();
  const size_t size = sequence.values.size();
  if (size > 0 && static_cast<uint64_t>(times) > SIZE_MAX / 64 / size) {
    return error(Code::kOutOfRange, "the template needs too much memory");
  }
  GEN_TRY(evaluator.heap().charge(static_cast<size_t>(times) * size * sizeof(Value)));
  std::vector<Value> values;
  for (int64_t i = 0; i < times && size > 0; ++i) {
    values.insert(values.end(), sequence.values.begin(), sequence.values.end());
  }
  return evaluator.heap().sequence(sequence.form, std::move(values));
}

bool is_row(const Value& value) noexcept {
  return value.is(Kind::kSequence) &&
         (value.sequence().form == Form::kList || value.sequence().form == Form::kTuple);
}

Result<Value> join(Evaluator& evaluator, Value left, Value right) {
  Heap& heap = evaluator.heap();
  if (left.is(Kind::kString)) {
    const bool markup = left.string().markup || right.string().markup;
    if (markup) {
      GEN_ASSIGN(left, escape_html(evaluator, left));
      GEN_ASSIGN(right, escape_html(evaluator, right));
    }
    GEN_TRY(evaluator.work(left.view().size() + right.view().size()));
    Text text = left.text();
    text.append(right.text());
    return heap.string(std::move(text), markup);
  }
  std::vector<Value> values = left.sequence().values;
  values.insert(values.end(), right.sequence().values.begin(), right.sequence().values.end());
  return heap.sequence(left.sequence().form, std::move(values));
}

// Start and end of a slice of `size` elements, as PySlice_AdjustIndices computes them.
Status bounds(const Value& begin, const Value& end, const Value& step, int64_t size, int64_t* from,
              int64_t* to, int64_t* by) {
  const auto number = [](const Value& value, int64_t standard, int64_t* out) -> Status {
    *out = standard;
    if (value.is(Kind::kNone)) return {};
    if (!is_integer(value)) {
      return error(Code::kInvalidArgument, "a slice needs integers, not %s", type_name(value));
    }
    *out = integer_of(value);
    return {};
  };
  GEN_TRY(number(step, 1, by));
  if (*by == 0) return error(Code::kInvalidArgument, "a slice with a step of 0");
  *by = std::clamp<int64_t>(*by, -INT32_MAX, INT32_MAX);
  const bool back = *by < 0;
  GEN_TRY(number(begin, back ? size - 1 : 0, from));
  GEN_TRY(number(end, back ? -1 : size, to));
  const auto adjust = [&](const Value& given, int64_t* at) {
    if (given.is(Kind::kNone)) return;
    if (*at < 0) *at = *at < -size ? (back ? -1 : 0) : *at + size;
    *at = std::min(*at, back ? size - 1 : size);
    *at = std::max<int64_t>(*at, back ? -1 : 0);
  };
  adjust(begin, from);
  adjust(end, to);
  return {};
}

}  // namespace

Result<Value> arithmetic(Evaluator& evaluator, Operator op, const Value& left, const Value& right) {
  static constexpr const char* kVerbs[] = {"added",   "subtracted", "multiplied", "divided",
                                           "divided", "divided",    "raised"};
  if (left.is_number() && right.is_number()) {
    Value made;
    if (is_integer(left) && is_integer(right)) {
      GEN_ASSIGN(made, integers(op, integer_of(left), integer_of(right)));
    } else {
      if (!left.is(Kind::kFloat) && !right.is(Kind::kFloat)) return overflow();
      const double a = as_double(left);
      const double b = as_double(right);
      const bool too_big =
          (left.is(Kind::kBigInt) && std::isinf(a)) || (right.is(Kind::kBigInt) && std::isinf(b));
      if (too_big) return error(Code::kOutOfRange, "an integer is too large for a float");
      GEN_ASSIGN(made, floats(op, a, b));
    }
    made.by_user = left.by_user || right.by_user;
    return made;
  }
  if (op == Operator::kAdd) {
    const bool texts = left.is(Kind::kString) && right.is(Kind::kString);
    const bool rows =
        is_row(left) && is_row(right) && left.sequence().form == right.sequence().form;
    if (texts || rows) return join(evaluator, left, right);
  } else if (op == Operator::kMultiply) {
    if ((left.is(Kind::kString) || is_row(left)) && is_integer(right)) {
      return repeat(evaluator, left, integer_of(right));
    }
    if ((right.is(Kind::kString) || is_row(right)) && is_integer(left)) {
      return repeat(evaluator, right, integer_of(left));
    }
  } else if (op == Operator::kModulo && left.is(Kind::kString)) {
    return percent_format(evaluator, left, right);
  }
  return no_such(kVerbs[static_cast<size_t>(op)], left, right);
}

Result<Value> slice(Evaluator& evaluator, const Value& object, const Value& begin, const Value& end,
                    const Value& step) {
  int64_t from = 0;
  int64_t to = 0;
  int64_t by = 1;
  if (object.is(Kind::kString)) {
    const Text& text = object.text();
    GEN_TRY(evaluator.work(text.size()));
    const bool plain = std::all_of(text.view().begin(), text.view().end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    std::vector<size_t> starts;  // offsets of the characters and of the end
    if (!plain) {
      GEN_TRY(evaluator.heap().charge(text.size() * sizeof(size_t)));
      for (size_t at = 0; at < text.size();) {
        starts.push_back(at);
        utf8_next(text.view(), &at);
      }
      starts.push_back(text.size());
    }
    const auto offset = [&](int64_t i) {
      return plain ? static_cast<size_t>(i) : starts[static_cast<size_t>(i)];
    };
    const auto size = static_cast<int64_t>(plain ? text.size() : starts.size() - 1);
    GEN_TRY(bounds(begin, end, step, size, &from, &to, &by));
    Text made;
    if (by == 1) {
      if (from < to) made = text.slice(offset(from), offset(to));
    } else {
      for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
        made.append(text, offset(i), offset(i + 1));
    }
    return evaluator.heap().string(std::move(made), object.string().markup);
  }
  if (object.is(Kind::kSequence) && object.sequence().form <= Form::kRange) {
    const Sequence& sequence = object.sequence();
    GEN_TRY(
        bounds(begin, end, step, static_cast<int64_t>(sequence.values.size()), &from, &to, &by));
    std::vector<Value> values;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
      values.push_back(sequence.values[static_cast<size_t>(i)]);
    }
    if (sequence.bounds == nullptr)
      return evaluator.heap().sequence(sequence.form, std::move(values));
    RangeBounds cut = *sequence.bounds;
    const int64_t first = cut.begin.integer;
    const int64_t stride = cut.step.integer;
    const auto place = [&](int64_t index, int64_t* out) {
      return !__builtin_mul_overflow(index, stride, out) &&
             !__builtin_add_overflow(first, *out, out);
    };
    if (!place(from, &cut.begin.integer) || !place(to, &cut.end.integer) ||
        __builtin_mul_overflow(stride, by, &cut.step.integer)) {
      return error(Code::kOutOfRange, "the slice of a range is beyond 64 bits");
    }
    return evaluator.heap().range(cut, std::move(values));
  }
  if (object.is(Kind::kUndefined)) return undefined_error(object);
  return error(Code::kInvalidArgument, "%s cannot be sliced", type_name(object));
}

}  // namespace gen::templates
