// SPDX-License-Identifier: Apache-2.0
// ArgumentCheck: whether the arguments of a call fit the schema of its tool. The schema is compiled
// once, into the grammar that also constrains generated calls, with any spelling of JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "calls/tool.h"
#include "grammar/mask/token_grammar.h"

namespace gen::agent {

/// Threads: immutable.
class ArgumentCheck {
 public:
  /// kInvalidArgument, naming the tool, for a schema that is invalid or cannot be enforced.
  static Result<ArgumentCheck> of(const calls::Tool& tool);

  /// Empty if the arguments fit; otherwise what is wrong and where, in one line.
  [[nodiscard]] Result<std::string> fault(const calls::Tool& tool,
                                          std::string_view arguments) const;

 private:
  explicit ArgumentCheck(std::shared_ptr<const grammar::TokenGrammar> grammar)
      : grammar_(std::move(grammar)) {}

  std::shared_ptr<const grammar::TokenGrammar> grammar_;
};

}  // namespace gen::agent
