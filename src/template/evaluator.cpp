// SPDX-License-Identifier: Apache-2.0
// Expressions of a template, see evaluator.h; statements are in statements.cpp.
#include "template/evaluator.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "template/arguments.h"

namespace gen::templates {
namespace {

uint32_t number_of(const Program& program, std::string_view name) {
  const auto found = std::find(program.names.begin(), program.names.end(), name);
  return static_cast<uint32_t>(found - program.names.begin());
}

// Adds the line of the innermost node that failed.
Status at_line(uint32_t line, const Status& status) {
  if (std::strncmp(status.message(), "template line ", 14) == 0) return status;
  std::string message = status.message();
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return error(status.code(), "template line %u: %s", line, message.c_str());
}

const Builtin* find_method(const Value& object, std::string_view name) noexcept {
  if (object.is(Kind::kString)) return find_text_method(name);
  if (object.is(Kind::kDict)) return find_dict_method(name);
  if (!object.is(Kind::kSequence)) return nullptr;
  const Form form = object.sequence().form;
  const bool has = form == Form::kList || form == Form::kTuple || form == Form::kRange;
  return has ? find_sequence_method(name) : nullptr;
}

}  // namespace

Evaluator::Evaluator(const Program& program, const Variables& variables, const LocalTime& now,
                     const Limits& limits)
    : program_(program),
      now_(now),
      heap_(limits.memory),
      steps_left_(limits.steps),
      depth_left_(limits.depth),
      globals_(program.names.size(), Value::missing()),
      loop_name_(number_of(program, "loop")),
      caller_name_(number_of(program, "caller")),
      varargs_name_(number_of(program, "varargs")),
      kwargs_name_(number_of(program, "kwargs")) {
  root_.context = &root_;
  for (size_t i = 0; i < globals_.size(); ++i) {
    const std::string& name = program.names[i];
    if (name == "self") {
      globals_[i] = Value::of(Kind::kSelf, nullptr);
      continue;
    }
    const auto given = std::find_if(variables.rbegin(), variables.rend(),
                                    [&](const auto& one) { return one.first == name; });
    if (given != variables.rend()) {
      globals_[i] = given->second;
    } else if (const Builtin* function = find_function(name)) {
      globals_[i] = Value::of(function);
    }
  }
}

Value Evaluator::look_up(uint32_t name, size_t* passed) const noexcept {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [other, value] : scope->values) {
      if (other == name) return value;
    }
    if (passed != nullptr) *passed += scope->values.size();
  }
  if (!globals_[name].is(Kind::kMissing)) return globals_[name];
  return Value::undefined(&program_.names[name]);
}

// Look-ups that pass no more names than this do not count as work.
constexpr size_t kFewNames = 64;

Result<Value> Evaluator::eval(const Expr& node) {
  if (node.kind == ExprKind::kConstant) return node.value;
  if (node.kind == ExprKind::kName) {
    size_t passed = scope_->values.size();
    const Value value = look_up(node.name, &passed);
    if (passed > kFewNames) GEN_TRY(work(8 * passed));
    return value;
  }
  if (depth_left_ == 0 || near_stack_end()) {
    return error(Code::kOutOfRange, "template line %u: nested too deep", node.line);
  }
  GEN_TRY(work());
  --depth_left_;
  Result<Value> value = eval_inner(node);
  ++depth_left_;
  if (!value.ok()) return at_line(node.line, value.status());
  return value;
}

Result<Value> Evaluator::eval_inner(const Expr& node) {
  switch (node.kind) {
    case ExprKind::kConstant:
      return node.value;
    case ExprKind::kName:
      return look_up(node.name);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return eval_items(node);
    case ExprKind::kDict:
      return eval_dict(node);
    case ExprKind::kAttribute: {
      GEN_ASSIGN(const Value object, eval(*node.args[0]));
      return attribute(object, node.text);
    }
    case ExprKind::kItem: {
      GEN_ASSIGN(const Value object, eval(*node.args[0]));
      GEN_ASSIGN(const Value key, eval(*node.args[1]));
      return item(object, key);
    }
    case ExprKind::kSlice:
      return eval_slice(node);
    case ExprKind::kCall:
      return eval_call(node);
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return eval_filter(node);
    case ExprKind::kNot: {
      GEN_ASSIGN(const Value value, eval(*node.args[0]));
      return Value::of(!truthy(value));
    }
    case ExprKind::kNegate: {
      GEN_ASSIGN(const Value value, eval(*node.args[0]));
      if (value.is(Kind::kFloat)) {
        Value made = Value::of(-value.number);
        made.by_user = value.by_user;
        return made;
      }
      if (!value.is_number() && !value.is(Kind::kUndefined)) {
        return error(Code::kInvalidArgument, "%s has no negative", type_name(value));
      }
      return arithmetic(*this, Operator::kSubtract, Value::of(int64_t{0}), value);
    }
    case ExprKind::kPlus: {
      GEN_ASSIGN(const Value value, eval(*node.args[0]));
      if (value.is(Kind::kBigInt)) return value;
      return arithmetic(*this, Operator::kSubtract, value, Value::of(int64_t{0}));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value value;
      for (const ExprPtr& one : node.args) {
        GEN_ASSIGN(value, eval(*one));
        if (truthy(value) == (node.kind == ExprKind::kOr)) break;
      }
      return value;
    }
    case ExprKind::kArithmetic:
      return eval_arithmetic(node);
    case ExprKind::kConcat:
      return eval_concat(node);
    case ExprKind::kCompare:
      return eval_compare(node);
    case ExprKind::kConditional: {
      GEN_ASSIGN(const Value condition, eval(*node.args[1]));
      if (truthy(condition)) return eval(*node.args[0]);
      if (node.args[2]) return eval(*node.args[2]);
      return Value::undefined();
    }
  }
  return Value::undefined();
}

Result<Value> Evaluator::eval_items(const Expr& node) {
  std::vector<Value> values;
  values.reserve(node.args.size());
  for (const ExprPtr& one : node.args) {
    GEN_ASSIGN(const Value value, eval(*one));
    values.push_back(value);
  }
  return heap_.sequence(node.kind == ExprKind::kList ? Form::kList : Form::kTuple,
                        std::move(values));
}

Result<Value> Evaluator::eval_dict(const Expr& node) {
  GEN_TRY(heap_.charge(sizeof(Dict) + node.args.size() * sizeof(Value)));
  Dict* const made = heap_.make<Dict>();
  for (size_t i = 0; i < node.args.size(); i += 2) {
    GEN_ASSIGN(const Value key, eval(*node.args[i]));
    GEN_ASSIGN(const Value value, eval(*node.args[i + 1]));
    GEN_ASSIGN(const bool can, can_be_key(key));
    if (!can) return error(Code::kInvalidArgument, "%s cannot be a key", type_name(key));
    GEN_TRY(set(made, key, value));
  }
  return Value::of(Kind::kDict, made);
}

Result<Value> Evaluator::eval_slice(const Expr& node) {
  GEN_ASSIGN(const Value object, eval(*node.args[0]));
  Value parts[3] = {Value::none(), Value::none(), Value::none()};
  for (size_t i = 0; i < 3; ++i) {
    if (!node.args[i + 1]) continue;
    GEN_ASSIGN(parts[i], eval(*node.args[i + 1]));
  }
  return slice(*this, object, parts[0], parts[1], parts[2]);
}

Status Evaluator::eval_args(const Expr& node, Args* args) {
  args->values.reserve(node.args.size() - 1);
  for (size_t i = 1; i < node.args.size(); ++i) {
    GEN_ASSIGN(const Value value, eval(*node.args[i]));
    args->values.push_back(value);
  }
  for (const auto& [name, one] : node.keywords) {
    GEN_ASSIGN(const Value value, eval(*one));
    args->named.push_back({name, value});
  }
  if (node.star) {
    GEN_ASSIGN(const Value value, eval(*node.star));
    std::vector<Value> storage;
    GEN_ASSIGN(const auto more, items(value, &storage));
    GEN_TRY(heap_.charge(more.size() * sizeof(Value)));
    args->values.insert(args->values.end(), more.begin(), more.end());
  }
  if (node.double_star) {
    GEN_ASSIGN(const Value value, eval(*node.double_star));
    if (!value.is(Kind::kDict)) return error(Code::kInvalidArgument, "** needs a dict");
    for (const auto& [key, one] : value.dict().entries) {
      if (!key.is(Kind::kString)) return error(Code::kInvalidArgument, "** needs texts as keys");
      args->named.push_back({key.view(), one, key});
    }
  }
  return {};
}

Result<Value> Evaluator::eval_call(const Expr& node) {
  const Expr& callee = *node.args[0];
  Args args;
  if (callee.kind == ExprKind::kAttribute) {  // a method call, without a method value
    GEN_ASSIGN(const Value object, eval(*callee.args[0]));
    if (const Builtin* method = find_method(object, callee.text)) {
      GEN_TRY(eval_args(node, &args));
      return invoke(*method, &object, args);
    }
    if (changes_its_object(object, callee.text)) {
      return error(Code::kInvalidArgument, "templates may not change values: %s.%.40s",
                   type_name(object), callee.text.c_str());
    }
    GEN_ASSIGN(const Value value, attribute(object, callee.text));
    GEN_TRY(eval_args(node, &args));
    return call(value, args);
  }
  GEN_ASSIGN(const Value value, eval(callee));
  GEN_TRY(eval_args(node, &args));
  return call(value, args);
}

Result<Value> Evaluator::eval_filter(const Expr& node) {
  if (node.builtin == nullptr) {
    return error(Code::kUnsupported, "template line %u: no %s is named '%.60s'", node.line,
                 node.kind == ExprKind::kTest ? "test" : "filter", node.text.c_str());
  }
  Value of = filtered_;
  if (node.args[0]) {
    GEN_ASSIGN(of, eval(*node.args[0]));
  }
  if (node.args.size() == 1 && node.keywords.empty() && !node.star && !node.double_star) {
    return invoke(*node.builtin, &of, Args());
  }
  Args args;
  GEN_TRY(eval_args(node, &args));
  return invoke(*node.builtin, &of, args);
}

Result<Value> Evaluator::eval_arithmetic(const Expr& node) {
  GEN_ASSIGN(Value value, eval(*node.args[0]));
  for (size_t i = 0; i < node.operators.size(); ++i) {
    GEN_ASSIGN(const Value right, eval(*node.args[i + 1]));
    GEN_ASSIGN(value, arithmetic(*this, node.operators[i], value, right));
  }
  return value;
}

Result<Value> Evaluator::eval_concat(const Expr& node) {
  Text text;
  for (const ExprPtr& one : node.args) {
    GEN_ASSIGN(const Value value, eval(*one));
    GEN_TRY(append_text(value, &text));
  }
  return heap_.string(std::move(text));
}

Result<Value> Evaluator::eval_compare(const Expr& node) {
  GEN_ASSIGN(Value left, eval(*node.args[0]));
  Value result;
  for (size_t i = 0; i < node.operators.size(); ++i) {
    GEN_ASSIGN(const Value right, eval(*node.args[i + 1]));
    GEN_ASSIGN(result, compare(node.operators[i], left, right));
    if (!truthy(result)) break;
    left = right;
  }
  return result;
}

Status Evaluator::compared(const Comparison& limits) noexcept {
  steps_left_ = limits.too_many ? 0 : limits.steps;
  if (limits.too_many) return error(Code::kOutOfRange, "the template takes too many steps");
  if (limits.too_deep) return error(Code::kOutOfRange, "a value is nested too deep");
  return {};
}

Result<bool> Evaluator::equals(const Value& left, const Value& right) {
  Comparison limits;
  limits.steps = steps_left_;
  limits.stack = stack_;
  const bool same = equal(left, right, &limits);
  GEN_TRY(compared(limits));
  return same;
}

Result<bool> Evaluator::precedes(const Value& left, const Value& right) {
  Comparison limits;
  limits.steps = steps_left_;
  limits.stack = stack_;
  GEN_ASSIGN(const bool below, less(left, right, &limits));
  GEN_TRY(compared(limits));
  return below;
}

Result<bool> Evaluator::can_be_key(const Value& value) {
  Comparison limits;  // a million steps, and no more than are left
  limits.steps = std::min(limits.steps, steps_left_);
  const uint64_t given = limits.steps;
  const bool can = hashable(value, &limits);
  steps_left_ -= given - limits.steps;
  if (limits.too_many && steps_left_ == 0) GEN_TRY(work());
  return can;
}

Result<const Value*> Evaluator::find(const Dict& dict, const Value& key) {
  Comparison limits;
  limits.steps = steps_left_;
  limits.stack = stack_;
  const Value* const found = dict.find(key, &limits);
  GEN_TRY(compared(limits));
  return found;
}

Status Evaluator::set(Dict* dict, const Value& key, const Value& value) {
  Comparison limits;
  limits.steps = steps_left_;
  limits.stack = stack_;
  dict->set(key, value, &limits);
  return compared(limits);
}

Result<Value> Evaluator::compare(Operator op, const Value& left, const Value& right) {
  GEN_TRY(work());
  switch (op) {
    case Operator::kEqual:
    case Operator::kNotEqual: {
      GEN_ASSIGN(const bool same, equals(left, right));
      return Value::of(same == (op == Operator::kEqual));
    }
    case Operator::kIn:
    case Operator::kNotIn: {
      bool found = false;
      if (right.is(Kind::kString)) {
        if (left.is(Kind::kUndefined)) return undefined_error(left);
        if (!left.is(Kind::kString)) {
          return error(Code::kInvalidArgument, "a text cannot hold %s", type_name(left));
        }
        GEN_TRY(work(right.view().size()));
        found = find_text(right.view(), left.view()) != std::string_view::npos;
      } else if (right.is(Kind::kDict)) {
        GEN_ASSIGN(const bool can, can_be_key(left));
        if (!can) return error(Code::kInvalidArgument, "%s cannot be a key", type_name(left));
        GEN_ASSIGN(const Value* const held, find(right.dict(), left));
        found = held != nullptr;
      } else {
        const bool keys = right.is(Kind::kSequence) && right.sequence().form == Form::kKeys;
        if (keys) {
          GEN_ASSIGN(const bool can, can_be_key(left));
          if (!can) return error(Code::kInvalidArgument, "%s cannot be a key", type_name(left));
        }
        std::vector<Value> storage;
        GEN_ASSIGN(const auto values, items(right, &storage));
        size_t seen = 0;
        while (!found && seen < values.size()) {
          GEN_ASSIGN(found, equals(left, values[seen++]));
        }
        give_back(right, values.size() - seen);
      }
      return Value::of(found == (op == Operator::kIn));
    }
    default:
      break;
  }
  const bool swap = op == Operator::kGreater || op == Operator::kLessEqual;
  GEN_ASSIGN(const bool below, swap ? precedes(right, left) : precedes(left, right));
  if (op == Operator::kLess || op == Operator::kGreater) return Value::of(below);
  // NaN is unordered.
  const bool nan = (left.is(Kind::kFloat) && left.number != left.number) ||
                   (right.is(Kind::kFloat) && right.number != right.number);
  return Value::of(!below && !nan);
}

Result<std::span<const Value>> Evaluator::items(const Value& value, std::vector<Value>* storage) {
  switch (value.kind) {
    case Kind::kSequence: {
      const Sequence& row = value.sequence();
      const std::span<const Value> left = std::span(row.values).subspan(row.taken);
      if (row.form == Form::kGenerator) row.taken = row.values.size();
      return left;
    }
    case Kind::kUndefined:
      return std::span<const Value>();
    case Kind::kDict: {
      const Dict& dict = value.dict();
      GEN_TRY(heap_.charge(dict.entries.size() * sizeof(Value)));
      storage->reserve(dict.entries.size());
      for (const auto& [key, one] : dict.entries) storage->push_back(key);
      return std::span<const Value>(*storage);
    }
    case Kind::kString: {
      const Text& text = value.text();
      for (size_t at = 0; at < text.size();) {
        const size_t begin = at;
        utf8_next(text.view(), &at);
        GEN_ASSIGN(const Value one, heap_.string(text.slice(begin, at)));
        storage->push_back(one);
      }
      return std::span<const Value>(*storage);
    }
    case Kind::kLoop: {
      const Loop& loop = static_cast<const Loop&>(*value.object);
      GEN_TRY(look_ahead(loop, SIZE_MAX));
      return loop.values.subspan(std::min(loop.index + 1, loop.values.size()));
    }
    default:
      break;
  }
  return error(Code::kInvalidArgument, "%s cannot be iterated over", type_name(value));
}

void Evaluator::give_back(const Value& value, size_t n) noexcept {
  if (!value.is(Kind::kSequence) || value.sequence().form != Form::kGenerator) return;
  value.sequence().taken -= n;
}

Result<Value> Evaluator::attribute(const Value& object, const std::string& name) {
  switch (object.kind) {
    case Kind::kUndefined:
      return undefined_error(object);
    case Kind::kDict:
    case Kind::kString:
    case Kind::kSequence: {
      if (const Builtin* method = find_method(object, name)) {
        GEN_TRY(heap_.charge(sizeof(Method)));
        Method* const made = heap_.make<Method>();
        made->self = object;
        made->builtin = method;
        return Value::of(Kind::kMethod, made);
      }
      if (object.is(Kind::kDict) && !changes_its_object(object, name)) {
        if (const Value* value = object.dict().find(name)) return *value;
      }
      if (object.is(Kind::kSequence) && object.sequence().bounds != nullptr) {
        const RangeBounds& bounds = *object.sequence().bounds;
        if (name == "start") return bounds.begin;
        if (name == "stop") return bounds.end;
        if (name == "step") return bounds.step;
      }
      if (object.is(Kind::kSequence) && object.sequence().grouped) {
        if (name == "grouper") return object.sequence().values[0];
        if (name == "list") return object.sequence().values[1];
      }
      return Value::undefined(&name, object.kind);
    }
    case Kind::kSelf:
      return block_of_self(name);
    case Kind::kNamespace: {
      const auto& entries = static_cast<const Namespace&>(*object.object).entries;
      if (entries.size() > kFewNames) GEN_TRY(work(8 * entries.size()));
      for (const auto& entry : entries) {
        if (entry.name == name) return entry.value;
      }
      return Value::undefined(&name, object.kind);
    }
    case Kind::kLoop:
      return loop_attribute(static_cast<const Loop&>(*object.object), name);
    case Kind::kCycler: {
      const Cycler& cycler = static_cast<const Cycler&>(*object.object);
      if (name == "current") return cycler.values[cycler.at];
      const Builtin* const method = name == "next"    ? find_function(" cycler.next")
                                    : name == "reset" ? find_function(" cycler.reset")
                                                      : nullptr;
      if (method == nullptr) return Value::undefined(&name, object.kind);
      Method* const made = heap_.make<Method>();
      made->self = object;
      made->builtin = method;
      return Value::of(Kind::kMethod, made);
    }
    case Kind::kMacro: {
      const Stmt& stmt = *static_cast<const Macro&>(*object.object).stmt;
      if (name == "name") return heap_.string(stmt.text, Writer::kTemplate);
      return Value::undefined(&name, object.kind);
    }
    default:
      return Value::undefined(&name, object.kind);
  }
}

Result<Value> Evaluator::item(const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return undefined_error(object);
  if (object.is(Kind::kDict)) {
    GEN_ASSIGN(const bool can, can_be_key(key));
    const Value* held = nullptr;
    if (can) {
      GEN_ASSIGN(held, find(object.dict(), key));
    }
    if (held != nullptr) return *held;
  }
  const bool whole = key.is(Kind::kInt) || key.is(Kind::kBool);
  if (whole && object.is(Kind::kSequence)) {
    const Sequence& sequence = object.sequence();
    const bool indexed = sequence.form <= Form::kRange;
    int64_t index = key.is(Kind::kBool) ? key.truth : key.integer;
    const auto size = static_cast<int64_t>(sequence.values.size());
    if (index < 0) index += size;
    if (indexed && index >= 0 && index < size) return sequence.values[static_cast<size_t>(index)];
    return Value::undefined(nullptr, Kind::kSequence);
  } else if (whole && object.is(Kind::kString)) {
    const int64_t index = key.is(Kind::kBool) ? key.truth : key.integer;
    if (index == INT64_MAX) return Value::undefined();
    GEN_TRY(work(object.view().size()));
    const Value end = index == -1 ? Value::none() : Value::of(index + 1);
    GEN_ASSIGN(const Value one, slice(*this, object, Value::of(index), end, Value::none()));
    if (truthy(one)) return one;
  } else if (key.is(Kind::kString)) {
    GEN_TRY(heap_.charge(key.view().size() + sizeof(Namespace)));
    Namespace* const holder = heap_.make<Namespace>();  // keeps the name for messages
    holder->entries.push_back({std::string(key.view()), Value()});
    const std::string& name = holder->entries[0].name;
    if (object.is(Kind::kDict) && find_dict_method(name) == nullptr) {
      return Value::undefined(&name, object.kind);
    }
    return attribute(object, name);
  }
  return Value::undefined();
}

Result<Value> Evaluator::invoke(const Builtin& builtin, const Value* self, const Args& args) {
  GEN_TRY(work(self != nullptr && self->is(Kind::kString) ? self->view().size() : 0));
  Value params[kMaxParams + 1];
  size_t count = 0;
  if (self != nullptr) params[count++] = *self;
  const size_t first = count;
  const size_t most = builtin.params.size();
  for (size_t i = 0; i < most; ++i) {
    params[count++] = i < args.values.size() ? args.values[i] : Value::missing();
  }
  const auto fail = [&](const char* what) {
    return error(Code::kInvalidArgument, "%s %.*s", what, static_cast<int>(builtin.name.size()),
                 builtin.name.data());
  };
  if (args.values.size() > most && !builtin.any) return fail("too many arguments for");
  for (const auto& [name, value, key] : args.named) {
    const auto* found = std::find(builtin.params.begin(), builtin.params.end(), name);
    if (found == builtin.params.end()) {
      if (builtin.any) continue;
      return fail("an argument of that name is unknown to");
    }
    Value& param = params[first + static_cast<size_t>(found - builtin.params.begin())];
    if (!param.is(Kind::kMissing)) return fail("an argument is given twice to");
    param = value;
  }
  for (size_t i = 0; i < builtin.required; ++i) {
    if (params[first + i].is(Kind::kMissing)) return fail("an argument is missing for");
  }
  return builtin.run(Call{*this, std::span<const Value>(params, count), args});
}

Result<Value> Evaluator::call(const Value& callee, const Args& args) {
  switch (callee.kind) {
    case Kind::kUndefined:
      return undefined_error(callee);
    case Kind::kFunction:
      return invoke(*callee.builtin, nullptr, args);
    case Kind::kMethod: {
      const Method& method = static_cast<const Method&>(*callee.object);
      return invoke(*method.builtin, &method.self, args);
    }
    case Kind::kMacro:
      return call_macro(static_cast<const Macro&>(*callee.object), args);
    case Kind::kBlock:
      return call_block(*static_cast<const BlockOfSelf&>(*callee.object).stmt, args);
    case Kind::kLoop:
      return call_loop(static_cast<const Loop&>(*callee.object), args);
    case Kind::kJoiner: {
      const Joiner& joiner = static_cast<const Joiner&>(*callee.object);
      if (joiner.used) return joiner.separator;
      joiner.used = true;
      return heap_.string("", Writer::kTemplate);
    }
    default:
      return error(Code::kInvalidArgument, "%s cannot be called", type_name(callee));
  }
}

Status Evaluator::append_text(const Value& value, Text* out) {
  if (value.is(Kind::kString)) {
    GEN_TRY(heap_.charge(value.view().size()));
    out->append(value.text());
    return {};
  }
  if (value.is(Kind::kUndefined)) return {};
  const size_t before = out->size();
  GEN_TRY(append_repr(*this, value, out));
  return heap_.charge(out->size() - before);
}

Result<Value> Evaluator::to_text(const Value& value) {
  if (value.is(Kind::kString)) return value;
  Text text;
  GEN_TRY(append_text(value, &text));
  return heap_.string(std::move(text));
}

}  // namespace gen::templates
