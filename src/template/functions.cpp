// SPDX-License-Identifier: Apache-2.0
// Functions that templates call by name, and methods of rows, dicts, loops and cyclers.
#include <algorithm>

#include "template/arguments.h"
#include "template/text_filters.h"

namespace gen::templates {
namespace {

constexpr int64_t kLongestRange = 100'000;

Result<Value> range(const Call& call) {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
  if (call.given(1)) {
    GEN_ASSIGN(begin, integer_argument(call, 0, 0));
    GEN_ASSIGN(end, integer_argument(call, 1, 0));
    GEN_ASSIGN(step, integer_argument(call, 2, 1));
  } else {
    GEN_ASSIGN(end, integer_argument(call, 0, 0));
  }
  if (step == 0) return error(Code::kInvalidArgument, "a range with a step of 0");
  const bool by_user = call[0].by_user || call[1].by_user || call[2].by_user;
  const auto number = [by_user](int64_t integer) {
    Value made = Value::of(integer);
    made.by_user = by_user;
    return made;
  };
  RangeBounds bounds;
  bounds.begin = number(begin);
  bounds.end = number(end);
  bounds.step = number(step);
  std::vector<Value> values;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(values.size()) >= kLongestRange) {
      return error(Code::kOutOfRange, "a range of more than %lld",
                   static_cast<long long>(kLongestRange));
    }
    values.push_back(number(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  GEN_TRY(call.evaluator.work(values.size() * 16));
  return call.evaluator.heap().range(bounds, std::move(values));
}

Status fill(const Call& call, const Value& from, Dict* to) {
  if (from.is(Kind::kDict)) {
    GEN_TRY(call.evaluator.heap().charge(from.dict().entries.size() * 2 * sizeof(Value)));
    for (const auto& [key, value] : from.dict().entries) {
      GEN_TRY(call.evaluator.set(to, key, value));
    }
    return {};
  }
  if (from.is(Kind::kUndefined)) return undefined_error(from);
  std::vector<Value> storage;
  GEN_ASSIGN(const auto pairs, call.evaluator.items(from, &storage));
  for (const Value& pair : pairs) {
    std::vector<Value> inner;
    GEN_ASSIGN(const auto both, call.evaluator.items(pair, &inner));
    if (both.size() != 2) return error(Code::kInvalidArgument, "a dict is made of pairs");
    GEN_ASSIGN(const bool can, call.evaluator.can_be_key(both[0]));
    if (!can) return error(Code::kInvalidArgument, "%s cannot be a key", type_name(both[0]));
    GEN_TRY(call.evaluator.heap().charge(2 * sizeof(Value)));
    GEN_TRY(call.evaluator.work());
    GEN_TRY(call.evaluator.set(to, both[0], both[1]));
  }
  return {};
}

Result<Value> dict(const Call& call) {
  Dict* const made = call.evaluator.heap().make<Dict>();
  if (call.args.values.size() > 1) return error(Code::kInvalidArgument, "dict takes one argument");
  if (!call.args.values.empty()) GEN_TRY(fill(call, call.args.values[0], made));
  for (const NamedArg& one : call.args.named) {
    GEN_ASSIGN(const Value key, one.name_as_text(&call.evaluator.heap()));
    made->set(key, one.value);
  }
  return Value::of(Kind::kDict, made);
}

Result<Value> make_namespace(const Call& call) {
  GEN_ASSIGN(const Value from, dict(call));
  Namespace* const made = call.evaluator.heap().make<Namespace>();
  for (const auto& [key, value] : from.dict().entries) {
    if (!key.is(Kind::kString)) return error(Code::kInvalidArgument, "names are texts");
    made->entries.push_back({std::string(key.view()), value, key.text().writer_of_all()});
  }
  return Value::of(Kind::kNamespace, made);
}

Result<Value> cycler(const Call& call) {
  if (call.args.values.empty()) return error(Code::kInvalidArgument, "cycler needs values");
  Cycler* const made = call.evaluator.heap().make<Cycler>();
  made->values = call.args.values;
  return Value::of(Kind::kCycler, made);
}

Result<Value> cycler_next(const Call& call) {
  const Cycler& cycler = static_cast<const Cycler&>(*call[0].object);
  const Value value = cycler.values[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.values.size();
  return value;
}

Result<Value> cycler_reset(const Call& call) {
  static_cast<const Cycler&>(*call[0].object).at = 0;
  return Value::none();
}

Result<Value> joiner(const Call& call) {
  Joiner* const made = call.evaluator.heap().make<Joiner>();
  GEN_ASSIGN(made->separator, text_argument(call, 0, ", "));
  return Value::of(Kind::kJoiner, made);
}

Result<Value> loop_cycle(const Call& call) {
  const Loop& loop = static_cast<const Loop&>(*call[0].object);
  if (call.args.values.empty()) return error(Code::kInvalidArgument, "cycle needs values");
  return call.args.values[loop.index % call.args.values.size()];
}

Result<Value> loop_changed(const Call& call) {
  const Loop& loop = static_cast<const Loop&>(*call[0].object);
  GEN_ASSIGN(const Value now, call.evaluator.heap().sequence(Form::kTuple, call.args.values));
  bool same = false;
  if (!loop.changed.is(Kind::kMissing)) {
    GEN_ASSIGN(same, call.evaluator.equals(loop.changed, now));
  }
  loop.changed = now;
  return Value::of(!same);
}

Result<Value> raise_exception(const Call& call) {
  GEN_ASSIGN(const Value message, text_argument(call, 0));
  std::string line(message.view().substr(0, 400));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return error(Code::kInvalidArgument, "the template says: %s", line.c_str());
}

Result<Value> strftime_now(const Call& call) {
  GEN_TRY(need_text(call, 0));
  GEN_TRY(call.evaluator.heap().charge(32 * call[0].view().size()));
  return call.evaluator.heap().string(format_time(call[0].view(), call.evaluator.now()),
                                      call[0].text().writer_of_all());
}

// A template cannot call names that begin with a space; the evaluator turns them into methods.
constexpr Builtin kFunctions[] = {
    {"cycler", cycler, 0, true},
    {"dict", dict, 0, true},
    {"joiner", joiner, 0, false, {"sep"}},
    {"namespace", make_namespace, 0, true},
    {"raise_exception", raise_exception, 1, false, {"message"}},
    {"range", range, 1, false, {"", "", ""}},
    {"strftime_now", strftime_now, 1, false, {"format"}},
    {" cycler.next", cycler_next},
    {" cycler.reset", cycler_reset},
    {" loop.changed", loop_changed, 0, true},
    {" loop.cycle", loop_cycle, 0, true},
};

Result<Value> get(const Call& call) {
  GEN_ASSIGN(const bool can, call.evaluator.can_be_key(call[1]));
  if (!can) return error(Code::kInvalidArgument, "%s cannot be a key", type_name(call[1]));
  GEN_ASSIGN(const Value* const value, call.evaluator.find(call[0].dict(), call[1]));
  if (value != nullptr) return *value;
  return call.given(2) ? call[2] : Value::none();
}

Result<Value> items(const Call& call) { return dict_items(call, call[0].dict(), Form::kItems); }

Result<Value> keys(const Call& call) {
  std::vector<Value> values;
  for (const auto& [key, value] : call[0].dict().entries) values.push_back(key);
  return call.evaluator.heap().sequence(Form::kKeys, std::move(values));
}

Result<Value> dict_values(const Call& call) {
  std::vector<Value> values;
  for (const auto& [key, value] : call[0].dict().entries) values.push_back(value);
  return call.evaluator.heap().sequence(Form::kValues, std::move(values));
}

Result<Value> copy(const Call& call) { return call[0]; }  // both are immutable

constexpr Builtin kDictMethods[] = {
    {"copy", copy}, {"get", get, 1, false, {"", ""}}, {"items", items},
    {"keys", keys}, {"values", dict_values},
};

Result<Value> index(const Call& call) {
  const auto& values = call[0].sequence().values;
  GEN_TRY(call.evaluator.work(values.size() * 16));
  for (size_t i = 0; i < values.size(); ++i) {
    GEN_ASSIGN(const bool same, call.evaluator.equals(values[i], call[1]));
    if (same) return Value::of(static_cast<int64_t>(i));
  }
  return error(Code::kInvalidArgument, "the value is not in the list");
}

Result<Value> count(const Call& call) {
  const auto& values = call[0].sequence().values;
  GEN_TRY(call.evaluator.work(values.size() * 16));
  int64_t n = 0;
  for (const Value& value : values) {
    GEN_ASSIGN(const bool same, call.evaluator.equals(value, call[1]));
    n += same ? 1 : 0;
  }
  return Value::of(n);
}

constexpr Builtin kSequenceMethods[] = {
    {"copy", copy},
    {"count", count, 1, false, {""}},
    {"index", index, 1, false, {""}},
};

}  // namespace

std::span<const Builtin> all_functions() noexcept { return kFunctions; }
std::span<const Builtin> dict_methods() noexcept { return kDictMethods; }
std::span<const Builtin> sequence_methods() noexcept { return kSequenceMethods; }

const Builtin* find_function(std::string_view name) noexcept { return find_in(kFunctions, name); }

const Builtin* find_dict_method(std::string_view name) noexcept {
  return find_in(kDictMethods, name);
}

const Builtin* find_sequence_method(std::string_view name) noexcept {
  return find_in(kSequenceMethods, name);
}

bool changes_its_object(const Value& object, std::string_view name) noexcept {
  static constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault",
                                                  "update"};
  static constexpr std::string_view kOfLists[] = {"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
  if (object.is(Kind::kDict))
    return std::find(std::begin(kOfDicts), std::end(kOfDicts), name) != std::end(kOfDicts);
  if (!object.is(Kind::kSequence) || object.sequence().form != Form::kList) return false;
  return std::find(std::begin(kOfLists), std::end(kOfLists), name) != std::end(kOfLists);
}

}  // namespace gen::templates
