// SPDX-License-Identifier: Apache-2.0
// A template as a tree: parser.h builds it, evaluator.h evaluates it. Chains (a + b - c, a and b,
// if/elif) are flat, so that the depth of the tree is the depth of brackets and blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "template/value.h"

namespace gen::templates {

enum class ExprKind : uint8_t {
  kConstant,     // value
  kName,         // name
  kList,         // args
  kTuple,        // args
  kDict,         // args: key, value, key, value, …
  kAttribute,    // args[0] . text
  kItem,         // args[0] [args[1]]
  kSlice,        // args[0] [args[1] : args[2] : args[3]], each may be null but the first
  kCall,         // args[0] (args[1…], keywords)
  kFilter,       // args[0] | builtin (args[1…], keywords); args[0] is null within {% filter %}
  kTest,         // args[0] is builtin (…)
  kNot,          // args[0]
  kNegate,       // args[0]
  kPlus,         // args[0]
  kAnd,          // args
  kOr,           // args
  kArithmetic,   // args with operators between, from the left
  kConcat,       // args
  kCompare,      // args with operators between
  kConditional,  // args[0] if args[1] else args[2], which may be null
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  uint32_t line = 0;
  uint32_t depth = 1;  // of the tree below
  uint32_t name = 0;   // of kName: Program::names
  Value value;
  std::string text;
  std::vector<ExprPtr> args;
  std::vector<Operator> operators;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star;         // *args of a call
  ExprPtr double_star;  // **kwargs
  const Builtin* builtin = nullptr;
};

enum class StmtKind : uint8_t {
  kText,         // value: a string
  kPrint,        // exprs
  kIf,           // exprs[i] → bodies[i]; one body more is the else
  kFor,          // target; exprs: over, filter or null; bodies: body, else
  kSet,          // target = exprs[0]
  kSetBlock,     // target = bodies[0], through exprs[0] (a filter) if there is one
  kMacro,        // name(params) with bodies[0]
  kCallBlock,    // exprs[0]: the call; params and bodies[0]: caller
  kFilterBlock,  // exprs[0]: filters around bodies[0]
  kWith,         // targets = exprs; bodies[0]
  kScope,        // bodies[0] in a scope of its own: generation
  kBlock,        // text: its name; bodies[0] sees the names of the template, not those around it
  kAutoescape,   // exprs[0]: whether; bodies[0]
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

/// The target of an assignment.
struct Target {
  enum class Form : uint8_t { kName, kTuple, kNamespace } form = Form::kName;
  uint32_t name = 0;
  std::string attribute;  // of a namespace
  std::vector<Target> parts;
};

struct Param {
  uint32_t name = 0;
  std::string text;
  ExprPtr standard;  // null: none
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  uint32_t line = 0;
  bool keeps_scope = false;  // a macro or block may hold on to the scope of the body
  bool recursive = false;    // of kFor
  bool scoped = false;       // of kBlock: it sees the names around it, too
  bool required = false;     // of kBlock: another template should have filled it
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // of kMacro
  uint32_t name = 0;
  std::string text;
  Value value;
  Target target;
  std::vector<Target> targets;
  std::vector<Param> params;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
};

/// A compiled template. Threads: immutable once parsed.
struct Program {
  Heap constants;
  std::vector<std::string> names;  // a name's number is its index
  Body body;
  std::unordered_map<std::string_view, const Stmt*> blocks;  // by name, wherever they stand
};

/// Limits of the depth of a tree and of nested blocks.
inline constexpr uint32_t kDeepestTree = 96;
inline constexpr size_t kMaxArguments = 1024;

}  // namespace gen::templates
