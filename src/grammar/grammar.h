// SPDX-License-Identifier: Apache-2.0
// Grammar: a compiled grammar, whatever its notation. matcher.h runs it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/home_process.h"
#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"
#include "grammar/json/json.h"
#include "grammar/machine/machines.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/schema.h"
#include "grammar/notation/tags.h"
#include "grammar/mask/token_grammar.h"

namespace gen::grammar {

struct GrammarLimits {
  size_t text_bytes = size_t{1} << 20U;
  size_t edges = size_t{4} << 20U;  // of its machines
  DfaFuel automata;                 // of regular expressions with lookaround
  MaskLimits masks;
  /// While it is raised, compiling the grammar or preparing it for a vocabulary stops with
  /// kCancelled. May be null.
  std::shared_ptr<const CancelFlag> cancel = nullptr;
};

/// Threads: immutable; any number of threads may use one object.
class Grammar {
 public:
  /// See gbnf.h.
  static Result<std::shared_ptr<const Grammar>> from_gbnf(std::string_view text,
                                                          const GrammarLimits& limits = {});
  /// See regex.h.
  static Result<std::shared_ptr<const Grammar>> from_regex(std::string_view pattern,
                                                           RegexMatch match = RegexMatch::kWhole,
                                                           const GrammarLimits& limits = {});
  /// Any JSON value, see json.h.
  static Result<std::shared_ptr<const Grammar>> any_json(const GrammarLimits& limits = {},
                                                         const JsonStyle& style = {});
  /// See schema/schema.h.
  static Result<std::shared_ptr<const Grammar>> from_json_schema(std::string_view schema,
                                                                 const SchemaOptions& options,
                                                                 const GrammarLimits& limits = {},
                                                                 SchemaReport* report = nullptr);
  /// See lark.h.
  static Result<std::shared_ptr<const Grammar>> from_lark(std::string_view text,
                                                          const GrammarLimits& limits = {},
                                                          const SchemaOptions& schemas = {},
                                                          SchemaReport* report = nullptr);
  /// See tags.h; `make` adds bodies to the expressions that it is given and returns the tags. A
  /// body may be made by parse_gbnf, parse_lark, parse_regex or any_json_expression.
  using MakeTags = std::function<Result<std::vector<Tag>>(Expressions& to)>;
  static Result<std::shared_ptr<const Grammar>> from_tags(const MakeTags& make,
                                                          const TagOptions& options,
                                                          const GrammarLimits& limits = {});
  /// See tags_text.h.
  static Result<std::shared_ptr<const Grammar>> from_tags(std::string_view text,
                                                          const GrammarLimits& limits = {},
                                                          const SchemaOptions& schemas = {},
                                                          SchemaReport* report = nullptr);
  static Result<std::shared_ptr<const Grammar>> from_expressions(const Expressions& expressions,
                                                                 ExprId root,
                                                                 const GrammarLimits& limits = {},
                                                                 const JsonRules& rules = {});

  [[nodiscard]] const Machines& machines() const noexcept { return *machines_; }

  /// The grammar over the tokens of a vocabulary; the same object for the same vocabulary, unless
  /// it has been evicted by many others since. kGrammar if the grammar names a token that the
  /// vocabulary lacks; kCancelled if it has to be made while GrammarLimits::cancel is raised.
  [[nodiscard]] Result<std::shared_ptr<const TokenGrammar>> over(
      const std::shared_ptr<const Vocabulary>& vocabulary) const;

  /// The same, but not cached.
  [[nodiscard]] Result<std::shared_ptr<const TokenGrammar>> once_over(
      const std::shared_ptr<const Vocabulary>& vocabulary) const;

  /// The process that made it, whose locks guard its caches.
  [[nodiscard]] const HomeProcess& home() const noexcept { return home_; }

  Grammar(Machines machines, const GrammarLimits& limits);

 private:
  static Result<std::shared_ptr<const Grammar>> from_machines(Machines machines,
                                                              const GrammarLimits& limits,
                                                              const JsonRules& rules,
                                                              Building* building);
  [[nodiscard]] std::shared_ptr<const TokenGrammar> known_over(const Vocabulary* vocabulary) const;

  HomeProcess home_;
  const std::shared_ptr<const Machines> machines_;
  const MaskLimits limits_;
  const std::shared_ptr<const CancelFlag> cancel_;  // may be null
  mutable std::mutex mutex_;                        // held for lookups, never while compiling
  // The newest are kept, with their masks.
  mutable std::vector<std::shared_ptr<const TokenGrammar>> over_;
};

}  // namespace gen::grammar
