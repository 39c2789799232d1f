// SPDX-License-Identifier: Apache-2.0
// Statements of a template: one function per tag. See parser.h.
#include "template/parser.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "template/builtin.h"
#include "template/expression_parser.h"

namespace gen::templates {
namespace {

using StmtPtr = std::unique_ptr<Stmt>;

class Parser final : ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, Program* program)
      : ExpressionParser(std::move(tokens), program) {}

  Status run() {
    std::string end;
    GEN_TRY(body(&program_->body, {}, &end));
    if (current().kind == TokenKind::kEnd) return {};
    return fail("unexpected '" + current().text + "'");
  }

 private:
  /// Parses up to and including a tag of `ends`, or to the end of the template.
  Status body(Body* out, std::initializer_list<std::string_view> ends, std::string* end) {
    const Nested nested(&nesting_);
    if (stack_.near_end()) return too_deep();
    if (nesting_ > kDeepestTree) {
      return error(Code::kUnsupported, "template line %u: blocks are nested more than %u deep",
                   current().line, kDeepestTree);
    }
    while (current().kind != TokenKind::kEnd) {
      const TokenKind kind = current().kind;
      if (kind == TokenKind::kData) {
        StmtPtr made = make_stmt(StmtKind::kText);
        GEN_ASSIGN(made->value, program_->constants.string(current().text, Writer::kTemplate));
        next();
        out->push_back(std::move(made));
      } else if (kind == TokenKind::kPrintBegin) {
        next();
        StmtPtr made = make_stmt(StmtKind::kPrint);
        GEN_ASSIGN(ExprPtr node, tuple());
        made->exprs.push_back(std::move(node));
        if (current().kind != TokenKind::kPrintEnd) return unexpected();
        next();
        out->push_back(std::move(made));
      } else {
        next();
        if (current().kind != TokenKind::kName) return unexpected();
        const std::string& tag = current().text;
        if (std::find(ends.begin(), ends.end(), tag) != ends.end()) {
          *end = tag;
          next();
          return {};
        }
        GEN_ASSIGN(StmtPtr made, statement());
        out->push_back(std::move(made));
        GEN_TRY(block_end());
      }
      if (!unknowns_.empty()) return unknowns_.front();
    }
    if (ends.size() == 0) return {};
    return fail("a block has no {% " + std::string(*(ends.end() - 1)) + " %}");
  }

  Status block_end() {
    if (current().kind != TokenKind::kBlockEnd) return unexpected();
    next();
    return {};
  }

  /// Parses the body of a block up to `end`; block_end() closes it.
  Status inner(Body* out, std::string_view end) {
    GEN_TRY(block_end());
    std::string found;
    return body(out, {end}, &found);
  }

  StmtPtr make_stmt(StmtKind kind) const {
    auto made = std::make_unique<Stmt>();
    made->kind = kind;
    made->line = current().line;
    return made;
  }

  Result<StmtPtr> statement() {
    const std::string tag = current().text;
    StmtPtr made = make_stmt(StmtKind::kText);
    next();
    Status status;
    if (tag == "if") {
      status = if_block(made.get());
    } else if (tag == "for") {
      status = for_block(made.get());
    } else if (tag == "set") {
      status = set(made.get());
    } else if (tag == "macro") {
      status = macro(made.get());
    } else if (tag == "call") {
      status = call_block(made.get());
    } else if (tag == "filter") {
      made->kind = StmtKind::kFilterBlock;
      GEN_ASSIGN(ExprPtr node, filters(nullptr, true));
      made->exprs.push_back(std::move(node));
      status = scoped_body(made.get(), "endfilter");
    } else if (tag == "with") {
      status = with(made.get());
    } else if (tag == "generation") {
      made->kind = StmtKind::kScope;
      status = scoped_body(made.get(), "endgeneration");
    } else if (tag == "block") {
      status = block(made.get());
    } else if (tag == "autoescape") {
      made->kind = StmtKind::kAutoescape;
      GEN_ASSIGN(ExprPtr node, expression());
      made->exprs.push_back(std::move(node));
      status = scoped_body(made.get(), "endautoescape");
    } else if (tag == "print") {
      made->kind = StmtKind::kPrint;
      while (current().kind != TokenKind::kBlockEnd) {
        if (!made->exprs.empty()) GEN_TRY(expect_symbol(","));
        GEN_ASSIGN(ExprPtr node, expression());
        made->exprs.push_back(std::move(node));
      }
    } else if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return fail("'" + tag + "' outside of a loop");
      made->kind = tag == "break" ? StmtKind::kBreak : StmtKind::kContinue;
    } else {
      return error(Code::kUnsupported, "template line %u: no tag is named '%.60s'", made->line,
                   tag.c_str());
    }
    GEN_TRY(std::move(status));
    return made;
  }

  Status if_block(Stmt* made) {
    made->kind = StmtKind::kIf;
    const Nested conditional(&conditional_);
    std::string end = "elif";
    while (end == "elif") {
      GEN_ASSIGN(ExprPtr condition, tuple(false));
      made->exprs.push_back(std::move(condition));
      GEN_TRY(block_end());
      GEN_TRY(body(&made->bodies.emplace_back(), {"elif", "else", "endif"}, &end));
    }
    if (end == "else") {
      GEN_TRY(block_end());
      GEN_TRY(body(&made->bodies.emplace_back(), {"endif"}, &end));
    }
    return {};
  }

  Status for_block(Stmt* made) {
    made->kind = StmtKind::kFor;
    GEN_ASSIGN(made->target, target(true));
    if (!take_word("in")) return unexpected();
    GEN_ASSIGN(ExprPtr over, tuple(false));
    made->exprs.push_back(std::move(over));
    made->exprs.push_back(nullptr);
    if (take_word("if")) {
      GEN_ASSIGN(made->exprs[1], expression());
    }
    made->recursive = take_word("recursive");
    GEN_TRY(block_end());
    made->bodies.resize(2);
    const uint32_t held = held_scopes_;
    std::string end;
    ++loops_;
    Status status = body(&made->bodies[0], {"else", "endfor"}, &end);
    --loops_;
    GEN_TRY(std::move(status));
    if (end == "else") {
      GEN_TRY(block_end());
      GEN_TRY(body(&made->bodies[1], {"endfor"}, &end));
    }
    made->keeps_scope = held != held_scopes_;
    return {};
  }

  Status scoped_body(Stmt* made, std::string_view end) {
    const uint32_t held = held_scopes_;
    // In Jinja2 the other bodies are functions: an outer loop is out of reach in them.
    const bool inline_body = made->kind == StmtKind::kWith || made->kind == StmtKind::kAutoescape;
    const uint32_t loops = std::exchange(loops_, inline_body ? loops_ : 0);
    Status status = inner(&made->bodies.emplace_back(), end);
    loops_ = loops;
    made->keeps_scope = held != held_scopes_;
    return status;
  }

  Status set(Stmt* made) {
    GEN_ASSIGN(made->target, target(true));
    if (take_symbol("=")) {
      made->kind = StmtKind::kSet;
      GEN_ASSIGN(ExprPtr value, tuple());
      made->exprs.push_back(std::move(value));
      return {};
    }
    made->kind = StmtKind::kSetBlock;
    made->exprs.push_back(nullptr);
    if (is_symbol("|")) {
      GEN_ASSIGN(made->exprs[0], filters(nullptr, false));
    }
    return scoped_body(made, "endset");
  }

  static bool is_space(std::string_view text) noexcept {
    return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos;
  }

  Status block(Stmt* made) {
    made->kind = StmtKind::kBlock;
    GEN_ASSIGN(made->text, expect_name());
    if (!program_->blocks.emplace(made->text, made).second) {
      return fail("block '" + made->text + "' is there twice");
    }
    made->scoped = take_word("scoped");
    // Blocks that it calls by self, and the macros in them, see its scope.
    if (made->scoped) ++held_scopes_;
    made->required = take_word("required");
    GEN_TRY(scoped_body(made, "endblock"));
    for (const auto& stmt : made->bodies[0]) {
      const bool blank = stmt->kind == StmtKind::kText && is_space(stmt->value.view());
      if (made->required && !blank) return fail("a required block may only hold white space");
    }
    take_word(made->text);
    return {};
  }

  Status with(Stmt* made) {
    made->kind = StmtKind::kWith;
    while (current().kind != TokenKind::kBlockEnd) {
      if (!made->targets.empty()) GEN_TRY(expect_symbol(","));
      GEN_ASSIGN(Target one, target(true));
      made->targets.push_back(std::move(one));
      GEN_TRY(expect_symbol("="));
      GEN_ASSIGN(ExprPtr value, expression());
      made->exprs.push_back(std::move(value));
    }
    return scoped_body(made, "endwith");
  }

  Status signature(Stmt* made) {
    GEN_TRY(expect_symbol("("));
    while (!is_symbol(")")) {
      if (!made->params.empty()) GEN_TRY(expect_symbol(","));
      Param param;
      GEN_ASSIGN(param.text, expect_name());
      param.name = name_number(param.text);
      if (take_symbol("=")) {
        GEN_ASSIGN(param.standard, expression());
      } else if (!made->params.empty() && made->params.back().standard) {
        return fail("an argument without a default comes late");
      }
      if (made->params.size() >= kMaxArguments) return fail("more than 1024 arguments");
      made->params.push_back(std::move(param));
    }
    return expect_symbol(")");
  }

  // The names that the body of a macro or caller reads decide which arguments it takes.
  Status macro_body(Stmt* made, std::string_view end) {
    std::vector<std::string> names;
    std::vector<std::string>* const outer = std::exchange(read_names_, &names);
    const uint32_t loops = std::exchange(loops_, 0);
    Status status = inner(&made->bodies.emplace_back(), end);
    loops_ = loops;
    read_names_ = outer;
    GEN_TRY(std::move(status));
    for (const std::string& name : names) {
      made->uses_caller |= name == "caller";
      made->uses_varargs |= name == "varargs";
      made->uses_kwargs |= name == "kwargs";
      if (outer != nullptr) outer->push_back(name);
    }
    ++held_scopes_;
    return {};
  }

  Status macro(Stmt* made) {
    made->kind = StmtKind::kMacro;
    GEN_ASSIGN(made->text, expect_name());
    made->name = name_number(made->text);
    GEN_TRY(signature(made));
    return macro_body(made, "endmacro");
  }

  Status call_block(Stmt* made) {
    made->kind = StmtKind::kCallBlock;
    made->text = "caller";
    if (is_symbol("(")) GEN_TRY(signature(made));
    GEN_ASSIGN(ExprPtr call, expression());
    if (call->kind != ExprKind::kCall) return fail("{% call %} needs a call");
    made->exprs.push_back(std::move(call));
    return macro_body(made, "endcall");
  }

  Result<Target> single_target(bool with_namespace) {
    Target made;
    if (take_symbol("(")) {
      GEN_ASSIGN(made, target(false));
      GEN_TRY(expect_symbol(")"));
      return made;
    }
    const Token& token = current();
    if (token.kind == TokenKind::kName) {
      for (const char* fixed : {"true", "false", "none", "True", "False", "None"}) {
        if (token.text == fixed) return fail("cannot assign to '" + token.text + "'");
      }
    }
    GEN_ASSIGN(const std::string name, expect_name());
    made.name = name_number(name);
    if (with_namespace && take_symbol(".")) {
      made.form = Target::Form::kNamespace;
      GEN_ASSIGN(made.attribute, expect_name());
    }
    return made;
  }

  Result<Target> target(bool with_namespace) {
    const Nested nested(&nesting_);
    if (is_too_deep()) return too_deep();
    GEN_ASSIGN(Target first, single_target(with_namespace));
    if (!is_symbol(",")) return first;
    Target made;
    made.form = Target::Form::kTuple;
    made.parts.push_back(std::move(first));
    while (take_symbol(",")) {
      if (current().kind != TokenKind::kName && !is_symbol("(")) break;
      if (is_word("in")) break;
      GEN_ASSIGN(Target one, single_target(with_namespace));
      made.parts.push_back(std::move(one));
    }
    return made;
  }

  uint32_t loops_ = 0;
  uint32_t held_scopes_ = 0;  // macros and scoped blocks parsed so far
};

}  // namespace

Result<std::unique_ptr<const Program>> parse(std::string_view source) {
  GEN_ASSIGN(std::vector<Token> tokens, tokenize(source));
  auto program = std::make_unique<Program>();
  GEN_TRY(Parser(std::move(tokens), program.get()).run());
  return std::unique_ptr<const Program>(std::move(program));
}

}  // namespace gen::templates
