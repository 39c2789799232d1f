// SPDX-License-Identifier: Apache-2.0
// Evaluates a compiled template. Errors are kInvalidArgument for errors of the template (a wrong
// type, raise_exception), kOutOfRange when a limit is exceeded; each names the line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "template/ast.h"
#include "template/builtin.h"
#include "template/clock.h"
#include "template/stack_bound.h"
#include "template/value.h"

namespace gen::templates {

using Variables = std::vector<std::pair<std::string, Value>>;

struct Limits {
  uint64_t steps = 20'000'000;        // nodes evaluated, and runs of 64 bytes read
  uint32_t depth = 400;               // nested nodes and macros
  size_t memory = size_t{256} << 20;  // bytes of all values made, and of the output
};

/// Names of one body. Those that a macro may hold on to live in the heap.
struct Scope final : Object {
  Scope* parent = nullptr;
  Scope* context = nullptr;  // what blocks in it see that are not scoped
  std::vector<std::pair<uint32_t, Value>> values;

  void enter(Scope* outer) {
    parent = outer;
    context = outer->context;
  }
};

struct Macro final : Object {
  const Stmt* stmt = nullptr;
  Scope* scope = nullptr;  // where it was defined
};

/// {{ self.name }}
struct BlockOfSelf final : Object {
  const Stmt* stmt = nullptr;
};

struct Method final : Object {
  Value self;
  const Builtin* builtin = nullptr;
};

/// What the filter of a loop has taken, and what it has not seen yet: it runs between the bodies.
struct LoopFilter {
  const Stmt& stmt;
  Scope* scope;  // around the loop
  std::span<const Value> rest;
  std::vector<Value> kept = {};
  bool running = false;
};

struct Loop final : Object {
  mutable std::span<const Value> values;  // with a filter: those that it has taken so far
  mutable LoopFilter* filter = nullptr;   // while the loop runs
  mutable size_t index = 0;
  mutable Value changed = Value::missing();
  size_t depth = 0;
  const Stmt* stmt = nullptr;  // of a recursive loop, while it runs
  Scope* scope = nullptr;
};

class Evaluator {
 public:
  Evaluator(const Program& program, const Variables& variables, const LocalTime& now,
            const Limits& limits);

  Result<Text> run();

  // For filters, tests, functions and methods.
  [[nodiscard]] Heap& heap() noexcept { return heap_; }
  [[nodiscard]] const LocalTime& now() const noexcept { return now_; }
  /// Whether this thread's stack allows no deeper nesting.
  [[nodiscard]] bool near_stack_end() const noexcept { return stack_.near_end(); }
  /// Counts work: `bytes` read.
  Status work(size_t bytes = 0) noexcept {
    const uint64_t cost = 1 + bytes / 64;
    if (cost > steps_left_) {
      steps_left_ = 0;
      return error(Code::kOutOfRange, "the template takes too many steps");
    }
    if (heap_.spent()) return heap_.charge(1);
    steps_left_ -= cost;
    return {};
  }
  /// The values that a loop iterates over. `storage` holds them if they are not stored as a row.
  /// This empties a generator, except for values that are given back to it.
  Result<std::span<const Value>> items(const Value& value, std::vector<Value>* storage);
  /// Returns the last `n` of items(), which were not used.
  static void give_back(const Value& value, size_t n) noexcept;
  Result<Value> attribute(const Value& object, const std::string& name);
  Result<Value> item(const Value& object, const Value& key);
  Result<Value> call(const Value& callee, const Args& args);
  Result<Value> invoke(const Builtin& builtin, const Value* self, const Args& args);
  /// Python's str() as a value, appended and by itself.
  Status append_text(const Value& value, Text* out);
  Result<Value> to_text(const Value& value);
  Result<Value> compare(Operator op, const Value& left, const Value& right);
  /// equal() and less() of value.h with the remaining steps.
  Result<bool> equals(const Value& left, const Value& right);
  Result<bool> precedes(const Value& left, const Value& right);
  /// The same for hashable(), and find() and set() of a dict.
  Result<bool> can_be_key(const Value& value);
  Result<const Value*> find(const Dict& dict, const Value& key);
  Status set(Dict* dict, const Value& key, const Value& value);
  /// Filters the values of a running loop until it has `count` of them or no more come.
  Status look_ahead(const Loop& loop, size_t count);

 private:
  Status compared(const Comparison& limits) noexcept;
  enum class Flow : uint8_t { kOn, kBreak, kContinue };

  Result<Value> eval(const Expr& node);
  Result<Value> eval_inner(const Expr& node);
  Result<Value> eval_items(const Expr& node);
  Result<Value> eval_dict(const Expr& node);
  Result<Value> eval_slice(const Expr& node);
  Result<Value> eval_call(const Expr& node);
  Result<Value> eval_filter(const Expr& node);
  Result<Value> eval_compare(const Expr& node);
  Result<Value> eval_arithmetic(const Expr& node);
  Result<Value> eval_concat(const Expr& node);
  Status eval_args(const Expr& node, Args* args);
  [[nodiscard]] Value look_up(uint32_t name, size_t* passed = nullptr) const noexcept;

  Status exec(const Body& body, Flow* flow);
  Status exec_stmt(const Stmt& stmt, Flow* flow);
  Status exec_if(const Stmt& stmt, Flow* flow);
  Status exec_for(const Stmt& stmt, Flow* flow);
  Status exec_loop(const Stmt& stmt, const Value& over, size_t depth, Flow* flow);
  Status exec_with(const Stmt& stmt, Flow* flow);
  Status exec_call_block(const Stmt& stmt);
  /// Evaluates a body in its own scope; the output as a value.
  Result<Value> captured(const Stmt& stmt, const Body& body);
  Status in_scope(const Stmt& stmt, const Body& body, Flow* flow) {
    return in_scope(stmt, body, scope_, flow);
  }
  Status in_scope(const Stmt& stmt, const Body& body, Scope* parent, Flow* flow);
  Status assign(const Target& target, const Value& value);
  void assign_name(uint32_t name, const Value& value);
  Result<Value> call_macro(const Macro& macro, const Args& args);
  Result<Value> call_loop(const Loop& loop, const Args& args);
  Result<Value> call_block(const Stmt& stmt, const Args& args);
  Result<Value> block_of_self(const std::string& name);
  Result<Value> loop_attribute(const Loop& loop, const std::string& name);
  Result<Value> make_macro(const Stmt& stmt);

  const Program& program_;
  const LocalTime& now_;
  Heap heap_;
  uint64_t steps_left_;
  uint32_t depth_left_;
  const StackBound stack_;
  std::vector<Value> globals_;  // by name; kMissing: none
  Scope root_;
  Scope* scope_ = &root_;
  Text output_;
  Text* out_ = &output_;
  uint32_t loop_name_, caller_name_, varargs_name_, kwargs_name_;
  Value filtered_;  // what {% filter %} and {% set | filter %} give their filters
};

/// Binary arithmetic with Python's rules.
Result<Value> arithmetic(Evaluator& evaluator, Operator op, const Value& left, const Value& right);
/// text % values.
Result<Value> percent_format(Evaluator& evaluator, const Value& format, const Value& values);
/// Escapes as MarkupSafe does; markup stays as it is.
Result<Value> escape_html(Evaluator& evaluator, const Value& value);
/// values[begin:end:step], of texts and rows.
Result<Value> slice(Evaluator& evaluator, const Value& object, const Value& begin, const Value& end,
                    const Value& step);
/// repr() of a value. kInvalidArgument for values without a text.
Status append_repr(Evaluator& evaluator, const Value& value, Text* out, int depth = 0);
/// repr() of a float.
std::string float_text(double number);

}  // namespace gen::templates
