// SPDX-License-Identifier: Apache-2.0
// Expressions of a template, and what their parser shares with that of statements (parser.cpp).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "template/ast.h"
#include "template/lexer.h"
#include "template/stack_bound.h"

namespace gen::templates {

/// Means that no filter or test has the node's name.
Status unknown(const char* what, const Expr& node);

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Program* program)
      : program_(program), tokens_(std::move(tokens)) {}

 protected:
  /// With `conditional`, `a if b else c` is one, too.
  Result<ExprPtr> expression(bool conditional = true);
  /// `a, b` is a tuple; an empty one only if `may_be_empty`.
  Result<ExprPtr> tuple(bool conditional = true, bool may_be_empty = false);
  /// `name(args) | name…` behind what is filtered, which may be null.
  Result<ExprPtr> filters(ExprPtr node, bool first_named);
  Result<ExprPtr> postfix(ExprPtr node);
  Result<ExprPtr> primary();

  [[nodiscard]] const Token& current() const noexcept { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const noexcept {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  }
  void next() noexcept {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  [[nodiscard]] bool is_symbol(std::string_view text) const noexcept {
    return current().kind == TokenKind::kSymbol && current().text == text;
  }
  [[nodiscard]] bool is_word(std::string_view text) const noexcept {
    return current().kind == TokenKind::kName && current().text == text;
  }
  bool take_symbol(std::string_view text) noexcept {
    const bool there = is_symbol(text);
    if (there) next();
    return there;
  }
  bool take_word(std::string_view text) noexcept {
    const bool there = is_word(text);
    if (there) next();
    return there;
  }
  Status expect_symbol(std::string_view text);
  Result<std::string> expect_name();
  [[nodiscard]] Status fail(const std::string& message) const;
  [[nodiscard]] Status unexpected() const;
  [[nodiscard]] Status too_deep() const;
  [[nodiscard]] bool is_too_deep() const noexcept {
    return nesting_ > kDeepestTree || stack_.near_end();
  }
  uint32_t name_number(std::string_view name);
  /// Checks that a node is not too deep for the functions that walk it.
  Result<ExprPtr> finish(ExprPtr node) const;
  ExprPtr make(ExprKind kind) const;

  /// Counts nesting during its lifetime.
  class Nested {
   public:
    explicit Nested(uint32_t* depth) : depth_(depth) { ++*depth_; }
    ~Nested() { --*depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    uint32_t* depth_;
  };

  Program* program_;
  StackBound stack_;
  uint32_t nesting_ = 0;
  /// Number of enclosing blocks that may not run. Within them an unknown filter or test is an error
  /// only when it is evaluated, as in Jinja2: templates test for features that only some engines
  /// have.
  uint32_t conditional_ = 0;
  /// Of the current statement: an error unless the statement turns out to be conditional.
  std::vector<Status> unknowns_;
  /// Names read so far, so that a macro knows which of its own it uses.
  std::vector<std::string>* read_names_ = nullptr;

 private:
  using Level = Result<ExprPtr> (ExpressionParser::*)();
  Result<ExprPtr> any_of(ExprKind kind, std::string_view word, Level below);
  Result<ExprPtr> either() { return any_of(ExprKind::kOr, "or", &ExpressionParser::both); }
  Result<ExprPtr> both() { return any_of(ExprKind::kAnd, "and", &ExpressionParser::negation); }
  Result<ExprPtr> negation();
  Result<ExprPtr> comparison();
  Result<ExprPtr> sum();
  Result<ExprPtr> concatenation();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary() { return unary(true); }
  Result<ExprPtr> unary(bool with_filters);
  Result<ExprPtr> arithmetic(std::initializer_list<std::pair<std::string_view, Operator>> operators,
                             Level below);
  Result<ExprPtr> literal();
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> subscript(ExprPtr node);
  Result<ExprPtr> index_or_slice(ExprPtr node);
  Status arguments(Expr* call);
  Result<ExprPtr> test(ExprPtr node);
  Result<ExprPtr> constant(Value value);
  bool tuple_ends() const noexcept;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace gen::templates
