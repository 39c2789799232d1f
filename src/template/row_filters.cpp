// SPDX-License-Identifier: Apache-2.0
// Filters that take or return sequences and numbers.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/c_locale.h"
#include "template/arguments.h"
#include "template/text_filters.h"

namespace gen::templates {
namespace {

Result<Value> row(const Call& call, Form form, std::vector<Value> values) {
  return call.evaluator.heap().sequence(form, std::move(values));
}

/// The values that a filter iterates over.
Result<std::vector<Value>> values_of(const Call& call, const Value& of) {
  std::vector<Value> storage;
  GEN_ASSIGN(const auto values, call.evaluator.items(of, &storage));
  GEN_TRY(call.evaluator.heap().charge(values.size() * sizeof(Value)));
  GEN_TRY(call.evaluator.work(values.size() * 64));
  if (values.data() == storage.data()) return storage;
  return std::vector<Value>(values.begin(), values.end());
}

/// value.a.0.b: an attribute path as filters take it. `standard` replaces an undefined value.
Result<Value> at_path(const Call& call, Value value, const Value& path, const Value& standard) {
  if (path.is(Kind::kMissing) || path.is(Kind::kNone)) return value;
  if (path.is(Kind::kInt)) return call.evaluator.item(value, path);
  if (!path.is(Kind::kString)) return error(Code::kInvalidArgument, "an attribute is a text");
  std::string_view rest = path.view();
  for (;;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string part(rest.substr(0, dot));
    Value key;
    if (!part.empty() && part.size() < 10 &&
        part.find_first_not_of("0123456789") == std::string::npos) {
      key = Value::of(static_cast<int64_t>(std::atoll(part.c_str())));
    } else {
      GEN_ASSIGN(key, call.evaluator.heap().string(part, Writer::kTemplate));
    }
    GEN_ASSIGN(value, call.evaluator.item(value, key));
    const bool replaced = !standard.is(Kind::kMissing) && !standard.is(Kind::kNone);
    if (value.is(Kind::kUndefined) && replaced) value = standard;
    if (dot == rest.size()) return value;
    rest.remove_prefix(dot + 1);
  }
}

Result<Value> folded(const Call& call, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kString)) return value;
  return call.evaluator.heap().string(in_case(value.text(), false));
}

/// Stable sort by keys; an error of a comparison ends it.
Status sort_by(const Call& call, std::vector<std::pair<Value, Value>>* keyed, bool reverse) {
  Status status;
  const auto before = [&](const auto& a, const auto& b) {
    if (!status.ok()) return false;
    auto order = call.evaluator.precedes(a.first, b.first);
    if (!order.ok()) {
      status = order.status();
      return false;
    }
    return *order;
  };
  if (reverse) std::reverse(keyed->begin(), keyed->end());
  std::stable_sort(keyed->begin(), keyed->end(), before);
  if (reverse) std::reverse(keyed->begin(), keyed->end());
  return status;
}

Result<Value> length(const Call& call) {
  const Value& of = call[0];
  if (of.is(Kind::kUndefined)) return Value::of(int64_t{0});
  if (of.is(Kind::kString)) return Value::of(static_cast<int64_t>(count_characters(of.view())));
  if (of.is(Kind::kDict)) return Value::of(static_cast<int64_t>(of.dict().entries.size()));
  if (of.is(Kind::kSequence) && of.sequence().form != Form::kGenerator) {
    return Value::of(static_cast<int64_t>(of.sequence().values.size()));
  }
  if (of.is(Kind::kLoop)) {
    const std::string length = "length";  // every loop has one, so no name needs to be kept
    return call.evaluator.attribute(of, length);
  }
  return error(Code::kInvalidArgument, "%s has no length", type_name(of));
}

Result<Value> list(const Call& call) {
  GEN_ASSIGN(auto values, values_of(call, call[0]));
  return row(call, Form::kList, std::move(values));
}

Result<Value> first(const Call& call) {
  std::vector<Value> storage;
  GEN_ASSIGN(const auto values, call.evaluator.items(call[0], &storage));
  if (values.empty()) return Value::undefined();
  Evaluator::give_back(call[0], values.size() - 1);
  return values.front();
}

Result<Value> last(const Call& call) {
  if (call[0].is(Kind::kSequence) && call[0].sequence().form == Form::kGenerator) {
    return error(Code::kInvalidArgument, "a generator has no last value");
  }
  std::vector<Value> storage;
  GEN_ASSIGN(const auto values, call.evaluator.items(call[0], &storage));
  return values.empty() ? Value::undefined() : values.back();
}

Result<Value> join(const Call& call) {
  GEN_ASSIGN(const Value separator, text_argument(call, 1));
  std::vector<Value> storage;
  GEN_ASSIGN(const auto values, call.evaluator.items(call[0], &storage));
  Text made;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) GEN_TRY(call.evaluator.append_text(separator, &made));
    const Value standard = Value::missing();
    const Value path = call.given(2) ? call[2] : Value::missing();
    GEN_ASSIGN(const Value value, at_path(call, values[i], path, standard));
    GEN_TRY(call.evaluator.append_text(value, &made));
  }
  return call.evaluator.heap().string(std::move(made));
}

Result<Value> reverse(const Call& call) {
  GEN_ASSIGN(auto values, values_of(call, call[0]));
  std::reverse(values.begin(), values.end());
  if (!call[0].is(Kind::kString)) {
    const bool generator =
        call[0].is(Kind::kSequence) && call[0].sequence().form == Form::kGenerator;
    return row(call, generator ? Form::kList : Form::kGenerator, std::move(values));
  }
  Text made;
  for (const Value& value : values) made.append(value.text());
  return call.evaluator.heap().string(std::move(made));
}

Result<Value> sort(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const bool backwards, truth_argument(call, 1, false));
  GEN_ASSIGN(const bool sensitive, truth_argument(call, 2, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& value : values) {
    Value key = value;
    if (call.given(3) && call[3].is(Kind::kString) &&
        call[3].view().find(',') != std::string_view::npos) {
      std::vector<Value> parts;
      std::string_view rest = call[3].view();
      for (bool more = true; more;) {
        const size_t comma = std::min(rest.find(','), rest.size());
        GEN_ASSIGN(const Value path,
                   call.evaluator.heap().string(rest.substr(0, comma), Writer::kTemplate));
        GEN_ASSIGN(const Value part, at_path(call, value, path, Value::missing()));
        GEN_ASSIGN(const Value lower, folded(call, part, sensitive));
        parts.push_back(lower);
        more = comma < rest.size();
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
      GEN_ASSIGN(key, row(call, Form::kList, std::move(parts)));
    } else {
      if (call.given(3)) {
        GEN_ASSIGN(key, at_path(call, value, call[3], Value::missing()));
      }
      GEN_ASSIGN(key, folded(call, key, sensitive));
    }
    keyed.emplace_back(key, value);
  }
  GEN_TRY(sort_by(call, &keyed, backwards));
  std::vector<Value> sorted;
  for (const auto& [key, value] : keyed) sorted.push_back(value);
  return row(call, Form::kList, std::move(sorted));
}

Result<Value> dictsort(const Call& call) {
  if (call[0].is(Kind::kUndefined)) return undefined_error(call[0]);
  if (!call[0].is(Kind::kDict))
    return error(Code::kInvalidArgument, "dictsort needs a dict, not %s", type_name(call[0]));
  GEN_ASSIGN(const bool sensitive, truth_argument(call, 1, false));
  const std::string_view by = call.given(2) && call[2].is(Kind::kString) ? call[2].view() : "key";
  if (by != "key" && by != "value")
    return error(Code::kInvalidArgument, "dictsort is by key or value");
  GEN_ASSIGN(const bool backwards, truth_argument(call, 3, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : call[0].dict().entries) {
    GEN_ASSIGN(const Value pair, call.evaluator.heap().tuple(key, value));
    GEN_ASSIGN(const Value order, folded(call, by == "key" ? key : value, sensitive));
    keyed.emplace_back(order, pair);
  }
  GEN_TRY(call.evaluator.work(keyed.size() * 256));
  GEN_TRY(sort_by(call, &keyed, backwards));
  std::vector<Value> sorted;
  for (const auto& [key, pair] : keyed) sorted.push_back(pair);
  return row(call, Form::kList, std::move(sorted));
}

Result<Value> items(const Call& call) {
  if (call[0].is(Kind::kUndefined)) return row(call, Form::kGenerator, {});
  if (!call[0].is(Kind::kDict))
    return error(Code::kInvalidArgument, "items needs a dict, not %s", type_name(call[0]));
  return dict_items(call, call[0].dict(), Form::kGenerator);
}

Result<Value> unique(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const bool sensitive, truth_argument(call, 1, false));
  std::vector<Value> kept;
  Dict* const seen = call.evaluator.heap().make<Dict>();
  for (const Value& value : values) {
    GEN_ASSIGN(Value key,
               at_path(call, value, call.given(2) ? call[2] : Value::missing(), Value::missing()));
    GEN_ASSIGN(key, folded(call, key, sensitive));
    GEN_ASSIGN(const bool can, call.evaluator.can_be_key(key));
    if (!can) return error(Code::kInvalidArgument, "%s cannot be told apart", type_name(key));
    const size_t before = seen->entries.size();
    GEN_TRY(call.evaluator.set(seen, key, Value::none()));
    if (seen->entries.size() > before) kept.push_back(value);
  }
  return row(call, Form::kGenerator, std::move(kept));
}

Result<Value> extreme(const Call& call, bool greatest) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const bool sensitive, truth_argument(call, 1, false));
  Value best = Value::undefined();
  Value best_key;
  for (const Value& value : values) {
    GEN_ASSIGN(Value key,
               at_path(call, value, call.given(2) ? call[2] : Value::missing(), Value::missing()));
    GEN_ASSIGN(key, folded(call, key, sensitive));
    if (&value != values.data()) {
      GEN_ASSIGN(const bool better, greatest ? call.evaluator.precedes(best_key, key)
                                             : call.evaluator.precedes(key, best_key));
      if (!better) continue;
    }
    best = value;
    best_key = key;
  }
  return best;
}

Result<Value> min(const Call& call) { return extreme(call, false); }
Result<Value> max(const Call& call) { return extreme(call, true); }

Result<Value> sum(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  Value total = call.given(2) ? call[2] : Value::of(int64_t{0});
  if (total.is(Kind::kString)) return error(Code::kInvalidArgument, "texts are joined, not summed");
  for (const Value& value : values) {
    GEN_ASSIGN(const Value one,
               at_path(call, value, call.given(1) ? call[1] : Value::missing(), Value::missing()));
    GEN_ASSIGN(total, arithmetic(call.evaluator, Operator::kAdd, total, one));
  }
  return total;
}

/// A call of a filter or test that map, select and similar filters name, with the arguments after
/// the name.
struct Inner {
  const Builtin* builtin = nullptr;
  Args args;
};

Result<Value> map(const Call& call) {
  if (!truthy(call[0])) return row(call, Form::kGenerator, {});  // includes none
  GEN_ASSIGN(auto values, values_of(call, call[0]));
  Inner inner;
  Value path = Value::missing();
  Value standard = Value::missing();
  if (call.args.values.empty()) {
    for (const auto& [name, value, key] : call.args.named) {
      if (name == "attribute") {
        path = value;
      } else if (name == "default") {
        standard = value;
      } else {
        return error(Code::kInvalidArgument, "map takes no argument '%.40s'",
                     std::string(name).c_str());
      }
    }
    if (path.is(Kind::kMissing))
      return error(Code::kInvalidArgument, "map needs a filter or an attribute");
  } else {
    const Value& name = call.args.values[0];
    if (!name.is(Kind::kString))
      return error(Code::kInvalidArgument, "map needs the name of a filter");
    inner.builtin = find_filter(name.view());
    if (inner.builtin == nullptr) {
      return error(Code::kUnsupported, "no filter is named '%.60s'",
                   std::string(name.view()).c_str());
    }
    inner.args.values.assign(call.args.values.begin() + 1, call.args.values.end());
    inner.args.named = call.args.named;
  }
  for (Value& value : values) {
    if (inner.builtin != nullptr) {
      GEN_ASSIGN(value, call.evaluator.invoke(*inner.builtin, &value, inner.args));
    } else {
      GEN_ASSIGN(value, at_path(call, value, path, standard));
    }
  }
  return row(call, Form::kGenerator, std::move(values));
}

Result<Value> choose(const Call& call, bool wanted, bool by_attribute) {
  if (!truthy(call[0])) return row(call, Form::kGenerator, {});  // includes none
  GEN_ASSIGN(auto values, values_of(call, call[0]));
  size_t at = 0;
  Value path = Value::missing();
  if (by_attribute) {
    if (call.args.values.empty()) return error(Code::kInvalidArgument, "an attribute is missing");
    path = call.args.values[at++];
  }
  Inner inner;
  if (at < call.args.values.size()) {
    const Value& name = call.args.values[at++];
    if (name.is(Kind::kString)) inner.builtin = find_test(name.view());
    if (inner.builtin == nullptr) {
      return error(Code::kUnsupported, "no test is named '%.60s'",
                   name.is(Kind::kString) ? std::string(name.view()).c_str() : type_name(name));
    }
    inner.args.values.assign(call.args.values.begin() + static_cast<ptrdiff_t>(at),
                             call.args.values.end());
    inner.args.named = call.args.named;
  }
  std::vector<Value> kept;
  for (const Value& value : values) {
    GEN_ASSIGN(Value what, at_path(call, value, path, Value::missing()));
    if (inner.builtin != nullptr) {
      GEN_ASSIGN(what, call.evaluator.invoke(*inner.builtin, &what, inner.args));
    }
    if (truthy(what) == wanted) kept.push_back(value);
  }
  return row(call, Form::kGenerator, std::move(kept));
}

Result<Value> select(const Call& call) { return choose(call, true, false); }
Result<Value> reject(const Call& call) { return choose(call, false, false); }
Result<Value> selectattr(const Call& call) { return choose(call, true, true); }
Result<Value> rejectattr(const Call& call) { return choose(call, false, true); }

Result<Value> batch(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const int64_t size, integer_argument(call, 1, 1));
  std::vector<Value> rows;
  std::vector<Value> part;
  for (const Value& value : values) {
    if (static_cast<int64_t>(part.size()) == size) {
      GEN_ASSIGN(const Value made, row(call, Form::kList, std::exchange(part, {})));
      rows.push_back(made);
    }
    part.push_back(value);
  }
  if (!part.empty()) {
    if (call.given(2) && !call[2].is(Kind::kNone) && static_cast<int64_t>(part.size()) < size) {
      if (size > 1'000'000) return error(Code::kOutOfRange, "a batch of more than a million");
      part.resize(static_cast<size_t>(size), call[2]);
    }
    GEN_ASSIGN(const Value made, row(call, Form::kList, std::move(part)));
    rows.push_back(made);
  }
  return row(call, Form::kGenerator, std::move(rows));
}

Result<Value> slices(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const int64_t count, integer_argument(call, 1, 1));
  if (count < 1 || count > 1'000'000)
    return error(Code::kInvalidArgument, "slice into %lld parts", static_cast<long long>(count));
  const size_t parts = static_cast<size_t>(count);
  const size_t each = values.size() / parts;
  const size_t more = values.size() % parts;
  std::vector<Value> rows;
  size_t at = 0;
  for (size_t i = 0; i < parts; ++i) {
    const size_t size = each + (i < more ? 1 : 0);
    std::vector<Value> part(values.begin() + static_cast<ptrdiff_t>(at),
                            values.begin() + static_cast<ptrdiff_t>(at + size));
    at += size;
    if (call.given(2) && !call[2].is(Kind::kNone) && i >= more) part.push_back(call[2]);
    GEN_ASSIGN(const Value made, row(call, Form::kList, std::move(part)));
    rows.push_back(made);
  }
  return row(call, Form::kGenerator, std::move(rows));
}

// Groups are pairs whose parts have names, too.
Result<Value> groupby(const Call& call) {
  GEN_ASSIGN(const auto values, values_of(call, call[0]));
  GEN_ASSIGN(const bool sensitive, truth_argument(call, 3, false));
  const Value standard = call.given(2) ? call[2] : Value::missing();
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& value : values) {
    GEN_ASSIGN(Value key, at_path(call, value, call[1], standard));
    GEN_ASSIGN(key, folded(call, key, sensitive));
    keyed.emplace_back(key, value);
  }
  GEN_TRY(sort_by(call, &keyed, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    std::vector<Value> members;
    while (end < keyed.size()) {
      GEN_ASSIGN(const bool same, call.evaluator.equals(keyed[end].first, keyed[begin].first));
      if (!same) break;
      members.push_back(keyed[end++].second);
    }
    GEN_ASSIGN(const Value name, at_path(call, members[0], call[1], standard));
    GEN_ASSIGN(const Value all, row(call, Form::kList, std::move(members)));
    GEN_ASSIGN(const Value group, call.evaluator.heap().group(name, all));
    groups.push_back(group);
    begin = end;
  }
  return row(call, Form::kList, std::move(groups));
}

Result<Value> standard(const Call& call) {
  GEN_ASSIGN(const bool any_false, truth_argument(call, 2, false));
  const bool replace = call[0].is(Kind::kUndefined) || (any_false && !truthy(call[0]));
  if (!replace) return call[0];
  return call.given(1) ? Result<Value>(call[1])
                       : call.evaluator.heap().string("", Writer::kTemplate);
}

Result<Value> attr(const Call& call) {
  GEN_ASSIGN(const Value name, text_argument(call, 1));
  if (call[0].is(Kind::kDict) && find_dict_method(name.view()) == nullptr)
    return Value::undefined();
  return call.evaluator.item(call[0], name);
}

Result<Value> absolute(const Call& call) {
  Value made = call[0];
  if (made.is(Kind::kUndefined)) return undefined_error(made);
  if (!made.is_number())
    return error(Code::kInvalidArgument, "%s has no absolute value", type_name(made));
  if (made.is(Kind::kBool)) return Value::of(int64_t{made.truth});
  if (made.is(Kind::kInt)) {
    if (made.integer == INT64_MIN) return error(Code::kOutOfRange, "an integer beyond 64 bits");
    made.integer = std::abs(made.integer);
  } else if (made.is(Kind::kFloat)) {
    made.number = std::fabs(made.number);
  } else if (made.view().front() == '-') {
    GEN_ASSIGN(made, call.evaluator.heap().string(made.view().substr(1), Writer::kUser));
    made.kind = Kind::kBigInt;
    made.by_user = call[0].by_user;
  }
  return made;
}

/// An integer to a multiple of 10 ** digits, ties to even ones.
Result<Value> rounded(const Value& of, int64_t digits) {
  const Status overflow = error(Code::kOutOfRange, "an integer beyond 64 bits");
  if (of.is(Kind::kBigInt)) return overflow;
  const int64_t number = of.is(Kind::kBool) ? of.truth : of.integer;
  if (digits > 18) {  // half of 10 ** 19 is the last number that becomes 0
    constexpr int64_t kHalf = 5'000'000'000'000'000'000;
    if (digits == 19 && (number > kHalf || number < -kHalf)) return overflow;
    return Value::of(int64_t{0});
  }
  int64_t scale = 1;
  for (int64_t i = 0; i < digits; ++i) scale *= 10;
  int64_t times = number / scale;
  const int64_t rest = std::abs(number % scale);
  if (rest > scale - rest || (rest == scale - rest && times % 2 != 0)) times += number < 0 ? -1 : 1;
  int64_t made = 0;
  if (__builtin_mul_overflow(times, scale, &made)) return overflow;
  return Value::of(made);
}

Result<Value> round(const Call& call) {
  if (!call[0].is_number())
    return error(Code::kInvalidArgument, "%s cannot be rounded", type_name(call[0]));
  GEN_ASSIGN(const int64_t precision, integer_argument(call, 1, 0));
  const std::string_view method =
      call.given(2) && call[2].is(Kind::kString) ? call[2].view() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    return error(Code::kInvalidArgument, "round is common, ceil or floor");
  }
  if (precision < -300 || precision > 300)
    return error(Code::kOutOfRange, "round to that many digits");
  const double value = as_double(call[0]);
  Value made;
  if (method != "common") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    made = Value::of((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) /
                     scale);
  } else if (!call[0].is(Kind::kFloat)) {  // Python's round keeps integers
    if (precision >= 0) {
      made = call[0].is(Kind::kBool) ? Value::of(int64_t{call[0].truth}) : call[0];
    } else {
      GEN_ASSIGN(made, rounded(call[0], -precision));
    }
  } else if (precision >= 0 && std::isfinite(value)) {
    const CLocale numbers;
    char buffer[700];  // exactly rounded, ties to even
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), value);
    made = Value::of(std::strtod(buffer, nullptr));
  } else {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    made = Value::of(std::nearbyint(value / scale) * scale);
  }
  made.by_user = call[0].by_user;
  return made;
}

// Parses a number as Python's float() does; only white space may follow.
bool parse_float(std::string_view view, double* out) {
  const Text stripped = strip(Text(view, Writer::kUser), nullptr, true, true);
  std::string text;
  const std::string_view inner = stripped.view();
  for (size_t i = 0; i < inner.size(); ++i) {
    const bool between = inner[i] == '_' && i > 0 && i + 1 < inner.size() &&
                         std::isdigit(static_cast<unsigned char>(inner[i - 1])) &&
                         std::isdigit(static_cast<unsigned char>(inner[i + 1]));
    if (!between) text += inner[i];
  }
  if (text.empty() || text.find_first_of("xXpP_ \t\n") != std::string::npos ||
      text.find("nan(") != std::string::npos)
    return false;
  const CLocale numbers;
  char* end = nullptr;
  *out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

bool parse_integer(std::string_view view, int64_t base, int64_t* out, bool* overflow) {
  const Text stripped = strip(Text(view, Writer::kUser), nullptr, true, true);
  std::string_view text = stripped.view();
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const char prefix = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int64_t named = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (named != 0 && (base == named || base == 0)) {
    text.remove_prefix(2);
    base = named;
  }
  if (base == 0) base = 10;
  int64_t value = 0;
  bool digit = false;
  for (const char c : text) {
    if (c == '_' && digit) {
      digit = false;
      continue;
    }
    const int64_t number = c >= '0' && c <= '9'                     ? c - '0'
                           : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                                    : 99;
    if (number >= base) return false;
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, negative ? -number : number, &value)) {
      *overflow = true;
      return false;
    }
    digit = true;
  }
  *out = value;
  return digit;
}

Result<Value> integer(const Call& call) {
  const Value& of = call[0];
  if (of.is(Kind::kUndefined)) return undefined_error(of);
  const Value fallback = call.given(1) ? call[1] : Value::of(int64_t{0});
  GEN_ASSIGN(const int64_t base, integer_argument(call, 2, 10));
  double number = 0;
  Value made;
  if (of.is(Kind::kString)) {
    int64_t value = 0;
    bool overflow = false;
    if (base != 0 && (base < 2 || base > 36)) return fallback;
    if (parse_integer(of.view(), base, &value, &overflow)) {
      made = Value::of(value);
      made.by_user = true;
      return made;
    }
    if (overflow) return error(Code::kOutOfRange, "an integer beyond 64 bits");
    if (!parse_float(of.view(), &number)) return fallback;
  } else if (of.is(Kind::kFloat)) {
    number = of.number;
  } else if (of.is(Kind::kBool)) {
    return Value::of(int64_t{of.truth});
  } else {
    return of.is_number() ? of : fallback;
  }
  if (!std::isfinite(number)) return fallback;
  if (std::fabs(number) >= 9.2e18) return error(Code::kOutOfRange, "an integer beyond 64 bits");
  made = Value::of(static_cast<int64_t>(number));
  made.by_user = true;
  return made;
}

Result<Value> floating(const Call& call) {
  const Value& of = call[0];
  if (of.is(Kind::kUndefined)) return undefined_error(of);
  double number = 0;
  if (of.is_number()) {
    number = as_double(of);
  } else if (!of.is(Kind::kString) || !parse_float(of.view(), &number)) {
    return call.given(1) ? call[1] : Value::of(0.0);
  }
  Value made = Value::of(number);
  made.by_user = of.by_user || of.is(Kind::kString);
  return made;
}

constexpr Builtin kFilters[] = {
    {"abs", absolute},
    {"attr", attr, 1, false, {"name"}},
    {"batch", batch, 1, false, {"linecount", "fill_with"}},
    {"count", length},
    {"d", standard, 0, false, {"default_value", "boolean"}},
    {"default", standard, 0, false, {"default_value", "boolean"}},
    {"dictsort", dictsort, 0, false, {"case_sensitive", "by", "reverse"}},
    {"first", first},
    {"float", floating, 0, false, {"default"}},
    {"groupby", groupby, 1, false, {"attribute", "default", "case_sensitive"}},
    {"int", integer, 0, false, {"default", "base"}},
    {"items", items},
    {"join", join, 0, false, {"d", "attribute"}},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map, 0, true},
    {"max", max, 0, false, {"case_sensitive", "attribute"}},
    {"min", min, 0, false, {"case_sensitive", "attribute"}},
    {"reject", reject, 0, true},
    {"rejectattr", rejectattr, 0, true},
    {"reverse", reverse},
    {"round", round, 0, false, {"precision", "method"}},
    {"select", select, 0, true},
    {"selectattr", selectattr, 0, true},
    {"slice", slices, 1, false, {"slices", "fill_with"}},
    {"sort", sort, 0, false, {"reverse", "case_sensitive", "attribute"}},
    {"sum", sum, 0, false, {"attribute", "start"}},
    {"unique", unique, 0, false, {"case_sensitive", "attribute"}},
};

}  // namespace

std::span<const Builtin> row_filters() noexcept { return kFilters; }

const Builtin* find_filter(std::string_view name) noexcept {
  const Builtin* const found = find_in(text_filters(), name);
  return found != nullptr ? found : find_in(row_filters(), name);
}

Result<Value> dict_items(const Call& call, const Dict& dict, Form form) {
  std::vector<Value> pairs;
  pairs.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    GEN_ASSIGN(const Value pair, call.evaluator.heap().tuple(key, value));
    pairs.push_back(pair);
  }
  return call.evaluator.heap().sequence(form, std::move(pairs));
}

}  // namespace gen::templates
