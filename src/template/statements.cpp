// SPDX-License-Identifier: Apache-2.0
// Statements of a template, its scopes, macros and loops; see evaluator.h.
#include <algorithm>

#include "template/evaluator.h"

namespace gen::templates {

Result<Text> Evaluator::run() {
  Flow flow = Flow::kOn;
  GEN_TRY(exec(program_.body, &flow));
  return std::move(output_);
}

void Evaluator::assign_name(uint32_t name, const Value& value) {
  for (auto& [other, held] : scope_->values) {
    if (other == name) {
      held = value;
      return;
    }
  }
  scope_->values.emplace_back(name, value);
}

Status Evaluator::assign(const Target& target, const Value& value) {
  if (target.form == Target::Form::kName) {
    GEN_TRY(work(8 * scope_->values.size()));
    assign_name(target.name, value);
    return {};
  }
  if (target.form == Target::Form::kNamespace) {
    const Value holder = look_up(target.name);
    if (!holder.is(Kind::kNamespace)) {
      return error(Code::kInvalidArgument, "'%.60s' is not a namespace",
                   program_.names[target.name].c_str());
    }
    auto& entries = static_cast<const Namespace&>(*holder.object).entries;
    GEN_TRY(work(8 * entries.size()));
    for (Namespace::Entry& entry : entries) {
      if (entry.name == target.attribute) {
        entry.value = value;
        return {};
      }
    }
    GEN_TRY(heap_.charge(sizeof(entries[0]) + target.attribute.size()));
    entries.push_back({target.attribute, value});
    return {};
  }
  std::vector<Value> storage;
  if (value.is(Kind::kUndefined)) return undefined_error(value);
  GEN_ASSIGN(const auto values, items(value, &storage));
  if (values.size() != target.parts.size()) {
    return error(Code::kInvalidArgument, "%zu values for %zu names", values.size(),
                 target.parts.size());
  }
  for (size_t i = 0; i < values.size(); ++i) GEN_TRY(assign(target.parts[i], values[i]));
  return {};
}

Status Evaluator::exec(const Body& body, Flow* flow) {
  for (const auto& stmt : body) {
    if (stmt->kind == StmtKind::kText) {
      GEN_TRY(work(stmt->value.view().size()));
      GEN_TRY(append_text(stmt->value, out_));
      continue;
    }
    if (depth_left_ == 0 || near_stack_end()) {
      return error(Code::kOutOfRange, "template line %u: nested too deep", stmt->line);
    }
    GEN_TRY(work());
    --depth_left_;
    Status status = exec_stmt(*stmt, flow);
    ++depth_left_;
    if (!status.ok()) {
      const std::string_view message = status.message();
      if (message.substr(0, 14) == "template line ") return status;
      return error(status.code(), "template line %u: %s", stmt->line, status.message());
    }
    if (*flow != Flow::kOn) return {};
  }
  return {};
}

Status Evaluator::exec_stmt(const Stmt& stmt, Flow* flow) {
  switch (stmt.kind) {
    case StmtKind::kText:
      return append_text(stmt.value, out_);
    case StmtKind::kPrint:
      for (const ExprPtr& one : stmt.exprs) {
        GEN_ASSIGN(const Value value, eval(*one));
        GEN_TRY(append_text(value, out_));
      }
      return {};
    case StmtKind::kIf:
      return exec_if(stmt, flow);
    case StmtKind::kFor:
      return exec_for(stmt, flow);
    case StmtKind::kSet: {
      GEN_ASSIGN(const Value value, eval(*stmt.exprs[0]));
      return assign(stmt.target, value);
    }
    case StmtKind::kSetBlock:
    case StmtKind::kFilterBlock: {
      GEN_ASSIGN(Value value, captured(stmt, stmt.bodies[0]));
      if (stmt.exprs[0]) {
        const Value outer = std::exchange(filtered_, value);
        Result<Value> made = eval(*stmt.exprs[0]);
        filtered_ = outer;
        GEN_ASSIGN(value, std::move(made));
      }
      if (stmt.kind == StmtKind::kSetBlock) return assign(stmt.target, value);
      if (!value.is(Kind::kString)) {
        return error(Code::kInvalidArgument, "the filters of a block make %s of its text",
                     type_name(value));
      }
      return append_text(value, out_);
    }
    case StmtKind::kMacro: {
      GEN_ASSIGN(const Value macro, make_macro(stmt));
      GEN_TRY(work(8 * scope_->values.size()));
      assign_name(stmt.name, macro);
      return {};
    }
    case StmtKind::kCallBlock:
      return exec_call_block(stmt);
    case StmtKind::kWith:
      return exec_with(stmt, flow);
    case StmtKind::kScope:
      return in_scope(stmt, stmt.bodies[0], flow);
    case StmtKind::kBlock:
      if (stmt.required) {
        return error(Code::kInvalidArgument, "nothing fills the required block '%.60s'",
                     stmt.text.c_str());
      }
      return in_scope(stmt, stmt.bodies[0], stmt.scoped ? scope_ : scope_->context, flow);
    case StmtKind::kAutoescape: {
      GEN_ASSIGN(const Value on, eval(*stmt.exprs[0]));
      if (truthy(on)) {
        return error(Code::kUnsupported,
                     "autoescape is for HTML and not supported; {%% autoescape false %%} is");
      }
      return in_scope(stmt, stmt.bodies[0], flow);
    }
    case StmtKind::kBreak:
      *flow = Flow::kBreak;
      return {};
    case StmtKind::kContinue:
      *flow = Flow::kContinue;
      return {};
  }
  return {};
}

Status Evaluator::exec_if(const Stmt& stmt, Flow* flow) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    GEN_ASSIGN(const Value condition, eval(*stmt.exprs[i]));
    if (truthy(condition)) return exec(stmt.bodies[i], flow);
  }
  if (stmt.bodies.size() > stmt.exprs.size()) return exec(stmt.bodies.back(), flow);
  return {};
}

Status Evaluator::in_scope(const Stmt& stmt, const Body& body, Scope* parent, Flow* flow) {
  Scope local;
  Scope* const scope = stmt.keeps_scope ? heap_.make<Scope>() : &local;
  Scope* const outer = scope_;
  scope->enter(parent);
  if (stmt.kind == StmtKind::kBlock) scope->context = parent;
  scope_ = scope;
  Status status = exec(body, flow);
  scope_ = outer;
  return status;
}

Result<Value> Evaluator::captured(const Stmt& stmt, const Body& body) {
  Text text;
  Text* const outer = std::exchange(out_, &text);
  Flow flow = Flow::kOn;
  Status status = in_scope(stmt, body, &flow);
  out_ = outer;
  GEN_TRY(std::move(status));
  return heap_.string(std::move(text));
}

Status Evaluator::exec_with(const Stmt& stmt, Flow* flow) {
  std::vector<Value> values;
  for (const ExprPtr& one : stmt.exprs) {  // in the outer scope
    GEN_ASSIGN(const Value value, eval(*one));
    values.push_back(value);
  }
  Scope local;
  Scope* const scope = stmt.keeps_scope ? heap_.make<Scope>() : &local;
  Scope* const outer = scope_;
  scope->enter(outer);
  scope_ = scope;
  Status status;
  for (size_t i = 0; i < values.size() && status.ok(); ++i) {
    status = assign(stmt.targets[i], values[i]);
  }
  if (status.ok()) status = exec(stmt.bodies[0], flow);
  scope_ = outer;
  return status;
}

Status Evaluator::exec_for(const Stmt& stmt, Flow* flow) {
  GEN_ASSIGN(const Value over, eval(*stmt.exprs[0]));
  return exec_loop(stmt, over, 0, flow);
}

Status Evaluator::exec_loop(const Stmt& stmt, const Value& over, size_t depth, Flow* flow) {
  std::vector<Value> storage;
  GEN_ASSIGN(std::span<const Value> values, items(over, &storage));
  Scope local;
  Scope* const outer = scope_;
  Scope* scope = &local;
  // Enters the scope of an iteration; a new one if a macro may hold the last.
  const auto enter = [&] {
    if (stmt.keeps_scope) scope = heap_.make<Scope>();
    scope->enter(outer);
    scope->values.clear();
    scope_ = scope;
  };
  const bool filtered = stmt.exprs[1] != nullptr;
  LoopFilter filter{stmt, outer, values};
  Status status;
  Loop* const loop = heap_.make<Loop>();
  if (filtered) {
    loop->filter = &filter;
  } else {
    loop->values = values;
  }
  loop->depth = depth;
  loop->stmt = stmt.recursive ? &stmt : nullptr;
  loop->scope = outer;
  bool completed = false;  // an iteration ran without break and continue, so else is skipped
  for (size_t i = 0; status.ok(); ++i) {
    status = look_ahead(*loop, i + 1);
    if (!status.ok() || i >= loop->values.size()) break;
    loop->index = i;
    enter();
    assign_name(loop_name_, Value::of(Kind::kLoop, loop));
    status = work();
    if (status.ok()) status = assign(stmt.target, loop->values[i]);
    Flow inner = Flow::kOn;
    if (status.ok()) status = exec(stmt.bodies[0], &inner);
    completed |= inner == Flow::kOn;
    if (inner == Flow::kBreak) {
      give_back(over, filtered ? filter.rest.size() : values.size() - i - 1);
      break;
    }
  }
  if (status.ok() && !completed && !stmt.bodies[1].empty()) {
    enter();
    status = exec(stmt.bodies[1], flow);
  }
  loop->values = {};  // values, filter and outer scope are not valid after the loop
  loop->filter = nullptr;
  loop->stmt = nullptr;
  scope_ = outer;
  return status;
}

Status Evaluator::look_ahead(const Loop& loop, size_t count) {
  LoopFilter* const filter = loop.filter;
  if (filter == nullptr || filter->kept.size() >= count) return {};
  if (filter->running) {
    return error(Code::kInvalidArgument, "the filter of a loop waits for what it filters");
  }
  Scope local;
  Scope* const outer = std::exchange(scope_, &local);
  filter->running = true;
  Status status;
  while (status.ok() && filter->kept.size() < count && !filter->rest.empty()) {
    const Value value = filter->rest.front();
    filter->rest = filter->rest.subspan(1);
    local.enter(filter->scope);
    local.values.clear();
    status = assign(filter->stmt.target, value);
    if (!status.ok()) break;
    Result<Value> condition = eval(*filter->stmt.exprs[1]);
    status = condition.status();
    if (!status.ok() || !truthy(*condition)) continue;
    status = heap_.charge(sizeof(Value));
    filter->kept.push_back(value);
  }
  filter->running = false;
  scope_ = outer;
  loop.values = filter->kept;
  return status;
}

Result<Value> Evaluator::loop_attribute(const Loop& loop, const std::string& name) {
  if (name == "last" || name == "nextitem") {
    GEN_TRY(look_ahead(loop, loop.index + 2));
  } else if (name == "length" || name == "revindex" || name == "revindex0") {
    GEN_TRY(look_ahead(loop, SIZE_MAX));
  }
  const auto count = static_cast<int64_t>(loop.values.size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index0") return Value::of(index);
  if (name == "index") return Value::of(index + 1);
  if (name == "first") return Value::of(index == 0);
  if (name == "last") return Value::of(index + 1 >= count);
  if (name == "length") return Value::of(count);
  if (name == "revindex") return Value::of(count - index);
  if (name == "revindex0") return Value::of(count - index - 1);
  if (name == "depth") return Value::of(static_cast<int64_t>(loop.depth) + 1);
  if (name == "depth0") return Value::of(static_cast<int64_t>(loop.depth));
  if (name == "previtem") {
    if (index > 0 && index <= count) return loop.values[loop.index - 1];
    return Value::undefined(&name);
  }
  if (name == "nextitem") {
    if (index + 1 < count) return loop.values[loop.index + 1];
    return Value::undefined(&name);
  }
  const Builtin* const method = name == "cycle"     ? find_function(" loop.cycle")
                                : name == "changed" ? find_function(" loop.changed")
                                                    : nullptr;
  if (method == nullptr) return Value::undefined(&name, Kind::kLoop);
  GEN_TRY(heap_.charge(sizeof(Method)));
  Method* const made = heap_.make<Method>();
  made->self = Value::of(Kind::kLoop, &loop);
  made->builtin = method;
  return Value::of(Kind::kMethod, made);
}

Result<Value> Evaluator::make_macro(const Stmt& stmt) {
  GEN_TRY(heap_.charge(sizeof(Macro)));
  Macro* const made = heap_.make<Macro>();
  made->stmt = &stmt;
  made->scope = scope_;
  return Value::of(Kind::kMacro, made);
}

Status Evaluator::exec_call_block(const Stmt& stmt) {
  GEN_ASSIGN(const Value caller, make_macro(stmt));
  const Expr& node = *stmt.exprs[0];
  GEN_ASSIGN(const Value callee, eval(*node.args[0]));
  Args args;
  GEN_TRY(eval_args(node, &args));
  args.named.push_back({"caller", caller});
  GEN_ASSIGN(const Value value, call(callee, args));
  return append_text(value, out_);
}

Result<Value> Evaluator::call_macro(const Macro& macro, const Args& args) {
  const Stmt& stmt = *macro.stmt;
  const auto fail = [&](const char* what) {
    return error(Code::kInvalidArgument, "macro %.60s %s", stmt.text.c_str(), what);
  };
  if (depth_left_ < 4 || near_stack_end())
    return error(Code::kOutOfRange, "macros are nested too deep");
  // Names are searched linearly.
  const size_t names = stmt.params.size() + args.named.size();
  GEN_TRY(work(8 * names * names));
  // What the call leaves behind may hold a macro of its scope, so the scope is on the heap.
  GEN_TRY(heap_.charge(sizeof(Scope)));
  Scope* const scope = heap_.make<Scope>();
  scope->enter(macro.scope);
  Scope* const outer = std::exchange(scope_, scope);
  Text text;
  Text* const outer_text = std::exchange(out_, &text);
  const auto run = [&]() -> Status {
    const auto take_named = [&](std::string_view name) -> const Value* {
      for (const NamedArg& one : args.named) {
        if (one.name == name) return &one.value;
      }
      return nullptr;
    };
    for (size_t i = 0; i < stmt.params.size(); ++i) {
      const Param& param = stmt.params[i];
      const Value* const named = take_named(param.text);
      if (i < args.values.size()) {
        if (named != nullptr) return fail("is given an argument twice");
        assign_name(param.name, args.values[i]);
      } else if (named != nullptr) {
        assign_name(param.name, *named);
      } else if (param.standard) {
        GEN_ASSIGN(const Value value, eval(*param.standard));
        assign_name(param.name, value);
      } else {
        assign_name(param.name, Value::undefined(&param.text));
      }
    }
    const auto is_param = [&](std::string_view name) {
      return std::any_of(stmt.params.begin(), stmt.params.end(),
                         [&](const Param& param) { return param.text == name; });
    };
    const Value* const caller = take_named("caller");
    if (stmt.uses_caller && !is_param("caller")) {
      const std::string& name = program_.names[caller_name_];
      assign_name(caller_name_, caller != nullptr ? *caller : Value::undefined(&name));
    }
    if (stmt.uses_kwargs) {
      Dict* const rest = heap_.make<Dict>();
      for (const NamedArg& one : args.named) {
        if (is_param(one.name) || (one.name == "caller" && stmt.uses_caller)) continue;
        GEN_ASSIGN(const Value key, one.name_as_text(&heap_));
        rest->set(key, one.value);
      }
      assign_name(kwargs_name_, Value::of(Kind::kDict, rest));
    } else {
      for (const NamedArg& one : args.named) {
        if (!is_param(one.name) && !(one.name == "caller" && stmt.uses_caller)) {
          return fail("does not take an argument of that name");
        }
      }
    }
    if (stmt.uses_varargs) {
      std::vector<Value> rest;
      for (size_t i = stmt.params.size(); i < args.values.size(); ++i) {
        rest.push_back(args.values[i]);
      }
      GEN_ASSIGN(const Value value, heap_.sequence(Form::kTuple, std::move(rest)));
      assign_name(varargs_name_, value);
    } else if (args.values.size() > stmt.params.size()) {
      return fail("takes fewer arguments");
    }
    Flow flow = Flow::kOn;
    return exec(stmt.bodies[0], &flow);
  };
  --depth_left_;
  Status status = run();
  ++depth_left_;
  out_ = outer_text;
  scope_ = outer;
  GEN_TRY(std::move(status));
  return heap_.string(std::move(text));
}

Result<Value> Evaluator::call_loop(const Loop& loop, const Args& args) {
  if (loop.stmt == nullptr) return error(Code::kInvalidArgument, "the loop is not recursive");
  if (args.values.size() != 1 || !args.named.empty()) {
    return error(Code::kInvalidArgument, "a recursive loop takes one argument");
  }
  if (depth_left_ < 4 || near_stack_end())
    return error(Code::kOutOfRange, "loops are nested too deep");
  Text text;
  Text* const outer_text = std::exchange(out_, &text);
  Scope* const outer = std::exchange(scope_, loop.scope);
  Flow flow = Flow::kOn;
  --depth_left_;
  Status status = exec_loop(*loop.stmt, args.values[0], loop.depth + 1, &flow);
  ++depth_left_;
  out_ = outer_text;
  scope_ = outer;
  GEN_TRY(std::move(status));
  return heap_.string(std::move(text));
}

Result<Value> Evaluator::block_of_self(const std::string& name) {
  const auto found = program_.blocks.find(name);
  if (found == program_.blocks.end()) return Value::undefined(&name, Kind::kSelf);
  GEN_TRY(heap_.charge(sizeof(BlockOfSelf)));
  BlockOfSelf* const made = heap_.make<BlockOfSelf>();
  made->stmt = found->second;
  return Value::of(Kind::kBlock, made);
}

Result<Value> Evaluator::call_block(const Stmt& stmt, const Args& args) {
  if (!args.values.empty() || !args.named.empty()) {
    return error(Code::kInvalidArgument, "block '%.60s' takes no arguments", stmt.text.c_str());
  }
  if (depth_left_ < 4 || near_stack_end()) {
    return error(Code::kOutOfRange, "blocks are nested too deep");
  }
  Text text;
  Text* const outer_text = std::exchange(out_, &text);
  Flow flow = Flow::kOn;
  --depth_left_;
  Status status = in_scope(stmt, stmt.bodies[0], scope_->context, &flow);
  ++depth_left_;
  out_ = outer_text;
  GEN_TRY(std::move(status));
  return heap_.string(std::move(text));
}

}  // namespace gen::templates
