// SPDX-License-Identifier: Apache-2.0
// Expressions of a template, see expression_parser.h. One function per level of precedence.
#include "template/expression_parser.h"

#include <algorithm>

#include "template/builtin.h"

namespace gen::templates {

Status ExpressionParser::fail(const std::string& message) const {
  return error(Code::kFormat, "template line %u: %.120s", current().line, message.c_str());
}

Status ExpressionParser::unexpected() const {
  switch (current().kind) {
    case TokenKind::kEnd:
      return fail("unexpected end of the template");
    case TokenKind::kBlockEnd:
    case TokenKind::kPrintEnd:
      return fail("unexpected end of a block");
    case TokenKind::kData:
      return fail("unexpected text");
    default:
      return fail("unexpected '" + current().text + "'");
  }
}

Status ExpressionParser::too_deep() const {
  if (nesting_ <= kDeepestTree) {
    return error(Code::kUnsupported,
                 "template line %u: nested %u deep, which is too deep for the thread's stack",
                 current().line, nesting_);
  }
  return error(Code::kUnsupported, "template line %u: nested more than %u deep", current().line,
               kDeepestTree);
}

Status ExpressionParser::expect_symbol(std::string_view text) {
  if (take_symbol(text)) return {};
  return unexpected();
}

Result<std::string> ExpressionParser::expect_name() {
  if (current().kind != TokenKind::kName) return unexpected();
  std::string name = current().text;
  next();
  return name;
}

uint32_t ExpressionParser::name_number(std::string_view name) {
  const auto [found, made] =
      numbers_.try_emplace(std::string(name), static_cast<uint32_t>(program_->names.size()));
  if (made) program_->names.emplace_back(name);
  return found->second;
}

ExprPtr ExpressionParser::make(ExprKind kind) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = current().line;
  return node;
}

Result<ExprPtr> ExpressionParser::finish(ExprPtr node) const {
  uint32_t deepest = 0;
  const auto look = [&deepest](const ExprPtr& child) {
    if (child) deepest = std::max(deepest, child->depth);
  };
  for (const ExprPtr& child : node->args) look(child);
  for (const auto& [name, child] : node->keywords) look(child);
  look(node->star);
  look(node->double_star);
  node->depth = deepest + 1;
  if (node->depth > kDeepestTree) {
    return error(Code::kUnsupported, "template line %u: an expression is nested more than %u deep",
                 node->line, kDeepestTree);
  }
  return node;
}

Result<ExprPtr> ExpressionParser::expression(bool conditional) {
  const Nested nested(&nesting_);
  if (is_too_deep()) {
    return too_deep();
  }
  if (!conditional) return either();
  const size_t known_before = unknowns_.size();
  GEN_ASSIGN(ExprPtr node, either());
  while (is_word("if")) {
    ExprPtr choice = make(ExprKind::kConditional);
    next();
    choice->args.push_back(std::move(node));
    const Nested may_be_skipped(&conditional_);
    unknowns_.resize(known_before);
    GEN_ASSIGN(ExprPtr condition, either());
    choice->args.push_back(std::move(condition));
    choice->args.push_back(nullptr);
    if (take_word("else")) {
      GEN_ASSIGN(choice->args[2], expression());
    }
    GEN_ASSIGN(node, finish(std::move(choice)));
  }
  return node;
}

bool ExpressionParser::tuple_ends() const noexcept {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kBlockEnd || kind == TokenKind::kPrintEnd || is_symbol(")") ||
         kind == TokenKind::kEnd;
}

Result<ExprPtr> ExpressionParser::tuple(bool conditional, bool may_be_empty) {
  ExprPtr made = make(ExprKind::kTuple);
  bool is_tuple = false;
  for (;;) {
    if (!made->args.empty() || is_tuple) {
      if (!take_symbol(",")) break;
      is_tuple = true;
    }
    // In a loop, `in`, `if` and `recursive` end the list as a bracket does.
    if (tuple_ends() || (!conditional && (is_word("if") || is_word("recursive")))) break;
    GEN_ASSIGN(ExprPtr one, expression(conditional));
    made->args.push_back(std::move(one));
  }
  if (made->args.size() == 1 && !is_tuple) return std::move(made->args[0]);
  if (made->args.empty() && !may_be_empty) return unexpected();
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::any_of(ExprKind kind, std::string_view word, Level below) {
  GEN_ASSIGN(ExprPtr node, (this->*below)());
  if (!is_word(word)) return node;
  ExprPtr made = make(kind);
  made->args.push_back(std::move(node));
  while (take_word(word)) {
    GEN_ASSIGN(ExprPtr one, (this->*below)());
    made->args.push_back(std::move(one));
  }
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::negation() {
  if (!is_word("not")) return comparison();
  const Nested nested(&nesting_);
  if (is_too_deep()) return too_deep();
  ExprPtr made = make(ExprKind::kNot);
  next();
  GEN_ASSIGN(ExprPtr node, negation());
  made->args.push_back(std::move(node));
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::comparison() {
  GEN_ASSIGN(ExprPtr node, sum());
  ExprPtr made = make(ExprKind::kCompare);
  static constexpr std::pair<std::string_view, Operator> kSymbols[] = {
      {"==", Operator::kEqual},  {"!=", Operator::kNotEqual},  {"<", Operator::kLess},
      {">", Operator::kGreater}, {"<=", Operator::kLessEqual}, {">=", Operator::kGreaterEqual}};
  for (;;) {
    const size_t before = made->operators.size();
    for (const auto& [symbol, op] : kSymbols) {
      if (!is_symbol(symbol)) continue;
      made->operators.push_back(op);
      next();
      break;
    }
    if (made->operators.size() == before && is_word("in")) {
      made->operators.push_back(Operator::kIn);
      next();
    } else if (made->operators.size() == before && is_word("not") &&
               ahead().kind == TokenKind::kName && ahead().text == "in") {
      made->operators.push_back(Operator::kNotIn);
      next();
      next();
    }
    if (made->operators.size() == before) break;
    GEN_ASSIGN(ExprPtr right, sum());
    if (made->args.empty()) made->args.push_back(std::move(node));
    made->args.push_back(std::move(right));
  }
  if (made->args.empty()) return node;
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::arithmetic(
    std::initializer_list<std::pair<std::string_view, Operator>> operators, Level below) {
  GEN_ASSIGN(ExprPtr node, (this->*below)());
  ExprPtr made;
  for (;;) {
    const auto* found = std::find_if(operators.begin(), operators.end(),
                                     [&](const auto& one) { return is_symbol(one.first); });
    if (found == operators.end()) break;
    if (!made) {
      made = make(ExprKind::kArithmetic);
      made->args.push_back(std::move(node));
    }
    next();
    made->operators.push_back(found->second);
    GEN_ASSIGN(ExprPtr right, (this->*below)());
    made->args.push_back(std::move(right));
  }
  if (!made) return node;
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::sum() {
  return arithmetic({{"+", Operator::kAdd}, {"-", Operator::kSubtract}},
                    &ExpressionParser::concatenation);
}

Result<ExprPtr> ExpressionParser::concatenation() {
  GEN_ASSIGN(ExprPtr node, product());
  if (!is_symbol("~")) return node;
  ExprPtr made = make(ExprKind::kConcat);
  made->args.push_back(std::move(node));
  while (take_symbol("~")) {
    GEN_ASSIGN(ExprPtr right, product());
    made->args.push_back(std::move(right));
  }
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::product() {
  return arithmetic({{"*", Operator::kMultiply},
                     {"/", Operator::kDivide},
                     {"//", Operator::kFloorDivide},
                     {"%", Operator::kModulo}},
                    &ExpressionParser::power);
}

Result<ExprPtr> ExpressionParser::power() {
  return arithmetic({{"**", Operator::kPower}}, &ExpressionParser::unary);
}

Result<ExprPtr> ExpressionParser::unary(bool with_filters) {
  const Nested nested(&nesting_);
  if (is_too_deep()) return too_deep();
  ExprPtr node;
  if (is_symbol("-") || is_symbol("+")) {
    node = make(is_symbol("-") ? ExprKind::kNegate : ExprKind::kPlus);
    next();
    GEN_ASSIGN(ExprPtr one, unary(false));
    node->args.push_back(std::move(one));
    GEN_ASSIGN(node, finish(std::move(node)));
  } else {
    GEN_ASSIGN(node, primary());
  }
  GEN_ASSIGN(node, postfix(std::move(node)));
  if (!with_filters) return node;
  for (;;) {
    if (is_symbol("|")) {
      GEN_ASSIGN(node, filters(std::move(node), false));
    } else if (is_word("is")) {
      GEN_ASSIGN(node, test(std::move(node)));
    } else if (is_symbol("(")) {
      ExprPtr call = make(ExprKind::kCall);
      call->args.push_back(std::move(node));
      GEN_TRY(arguments(call.get()));
      GEN_ASSIGN(node, finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::constant(Value value) {
  ExprPtr node = make(ExprKind::kConstant);
  node->value = value;
  next();
  return node;
}

Result<ExprPtr> ExpressionParser::literal() {
  const std::string& word = current().text;
  if (word == "true" || word == "True") return constant(Value::of(true));
  if (word == "false" || word == "False") return constant(Value::of(false));
  if (word == "none" || word == "None") return constant(Value::none());
  ExprPtr node = make(ExprKind::kName);
  node->name = name_number(word);
  if (read_names_ != nullptr) read_names_->push_back(word);
  next();
  return node;
}

Result<ExprPtr> ExpressionParser::primary() {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::kName:
      return literal();
    case TokenKind::kInteger:
      return constant(Value::of(token.integer));
    case TokenKind::kFloat:
      return constant(Value::of(token.number));
    case TokenKind::kString: {
      std::string text;
      ExprPtr node = make(ExprKind::kConstant);
      for (; current().kind == TokenKind::kString; next()) text += current().text;
      GEN_ASSIGN(node->value, program_->constants.string(text, Writer::kTemplate));
      return node;
    }
    case TokenKind::kSymbol:
      break;
    default:
      return unexpected();
  }
  if (take_symbol("(")) {
    GEN_ASSIGN(ExprPtr node, tuple(true, true));
    GEN_TRY(expect_symbol(")"));
    return node;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  return unexpected();
}

Result<ExprPtr> ExpressionParser::list() {
  ExprPtr made = make(ExprKind::kList);
  next();
  while (!is_symbol("]")) {
    if (!made->args.empty()) GEN_TRY(expect_symbol(","));
    if (is_symbol("]")) break;
    GEN_ASSIGN(ExprPtr one, expression());
    made->args.push_back(std::move(one));
  }
  next();
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::dict() {
  ExprPtr made = make(ExprKind::kDict);
  next();
  while (!is_symbol("}")) {
    if (!made->args.empty()) GEN_TRY(expect_symbol(","));
    if (is_symbol("}")) break;
    GEN_ASSIGN(ExprPtr key, expression());
    GEN_TRY(expect_symbol(":"));
    GEN_ASSIGN(ExprPtr value, expression());
    made->args.push_back(std::move(key));
    made->args.push_back(std::move(value));
  }
  next();
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::postfix(ExprPtr node) {
  for (;;) {
    if (is_symbol(".") || is_symbol("[")) {
      GEN_ASSIGN(node, subscript(std::move(node)));
    } else if (is_symbol("(")) {
      ExprPtr call = make(ExprKind::kCall);
      call->args.push_back(std::move(node));
      GEN_TRY(arguments(call.get()));
      GEN_ASSIGN(node, finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr node) {
  if (is_symbol("[")) return index_or_slice(std::move(node));
  next();
  ExprPtr made;
  if (current().kind == TokenKind::kName) {
    made = make(ExprKind::kAttribute);
    made->text = current().text;
    made->args.push_back(std::move(node));
    next();
    return finish(std::move(made));
  }
  if (current().kind != TokenKind::kInteger) return unexpected();
  made = make(ExprKind::kItem);
  made->args.push_back(std::move(node));
  GEN_ASSIGN(ExprPtr index, constant(Value::of(current().integer)));
  made->args.push_back(std::move(index));
  return finish(std::move(made));
}

Result<ExprPtr> ExpressionParser::index_or_slice(ExprPtr node) {
  ExprPtr made = make(ExprKind::kItem);
  made->args.push_back(std::move(node));
  next();
  ExprPtr parts[3];
  size_t colons = 0;
  while (!is_symbol("]")) {
    if (take_symbol(":")) {
      if (++colons > 2) return unexpected();
    } else {
      if (parts[colons]) return unexpected();
      GEN_ASSIGN(parts[colons], expression());
      if (colons == 0 && is_symbol(",")) {  // x[1, 2]: the key is a tuple
        ExprPtr pair = make(ExprKind::kTuple);
        pair->args.push_back(std::move(parts[0]));
        while (take_symbol(",")) {
          GEN_ASSIGN(ExprPtr one, expression());
          pair->args.push_back(std::move(one));
        }
        GEN_ASSIGN(parts[0], finish(std::move(pair)));
      }
    }
  }
  next();
  if (colons == 0) {
    if (!parts[0]) return unexpected();
    made->args.push_back(std::move(parts[0]));
  } else {
    made->kind = ExprKind::kSlice;
    for (ExprPtr& part : parts) made->args.push_back(std::move(part));
  }
  return finish(std::move(made));
}

Status ExpressionParser::arguments(Expr* call) {
  GEN_TRY(expect_symbol("("));
  for (bool first = true; !is_symbol(")"); first = false) {
    if (!first) GEN_TRY(expect_symbol(","));
    if (is_symbol(")")) break;
    if (is_symbol("*") || is_symbol("**")) {
      ExprPtr& star = is_symbol("*") ? call->star : call->double_star;
      if (star) return unexpected();
      next();
      GEN_ASSIGN(star, expression());
    } else if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kSymbol &&
               ahead().text == "=") {
      std::string name = current().text;
      if (call->keywords.size() >= kMaxArguments) return fail("more than 1024 arguments");
      for (const auto& [other, value] : call->keywords) {
        if (other == name) return fail("the argument '" + name + "' is given twice");
      }
      next();
      next();
      GEN_ASSIGN(ExprPtr value, expression());
      call->keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (!call->keywords.empty() || call->star) return fail("an argument without a name is late");
      GEN_ASSIGN(ExprPtr value, expression());
      call->args.push_back(std::move(value));
    }
  }
  next();
  return {};
}

Status unknown(const char* what, const Expr& node) {
  if (node.text == "random") {
    return error(Code::kUnsupported,
                 "template line %u: the filter 'random' is not supported: a conversation must make "
                 "the same text whenever it is laid out",
                 node.line);
  }
  return error(Code::kUnsupported, "template line %u: no %s is named '%.60s'", node.line, what,
               node.text.c_str());
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr node, bool first_named) {
  while (first_named || is_symbol("|")) {
    if (!first_named) next();
    first_named = false;
    ExprPtr made = make(ExprKind::kFilter);
    GEN_ASSIGN(made->text, expect_name());
    while (take_symbol(".")) {
      GEN_ASSIGN(const std::string part, expect_name());
      made->text += "." + part;
    }
    made->builtin = find_filter(made->text);
    if (made->builtin == nullptr && conditional_ == 0)
      unknowns_.push_back(unknown("filter", *made));
    made->args.push_back(std::move(node));
    if (is_symbol("(")) GEN_TRY(arguments(made.get()));
    GEN_ASSIGN(node, finish(std::move(made)));
  }
  return node;
}

Result<ExprPtr> ExpressionParser::test(ExprPtr node) {
  next();
  const bool negated = take_word("not");
  ExprPtr made = make(ExprKind::kTest);
  GEN_ASSIGN(made->text, expect_name());
  made->builtin = find_test(made->text);
  if (made->builtin == nullptr && conditional_ == 0) unknowns_.push_back(unknown("test", *made));
  made->args.push_back(std::move(node));
  const TokenKind kind = current().kind;
  const bool word =
      kind == TokenKind::kName && !is_word("else") && !is_word("or") && !is_word("and");
  if (is_word("is")) return fail("tests cannot be chained with is");
  if (is_symbol("(")) {
    GEN_TRY(arguments(made.get()));
  } else if (word || kind == TokenKind::kString || kind == TokenKind::kInteger ||
             kind == TokenKind::kFloat || is_symbol("[") || is_symbol("{")) {
    GEN_ASSIGN(ExprPtr argument, primary());
    GEN_ASSIGN(argument, postfix(std::move(argument)));
    made->args.push_back(std::move(argument));
  }
  GEN_ASSIGN(made, finish(std::move(made)));
  if (!negated) return made;
  ExprPtr inverse = make(ExprKind::kNot);
  inverse->args.push_back(std::move(made));
  return finish(std::move(inverse));
}

}  // namespace gen::templates
