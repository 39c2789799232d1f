// SPDX-License-Identifier: Apache-2.0
// CallWriter: calls of some tools in a format, as expressions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calls/call_format.h"
#include "calls/syntax/arguments.h"
#include "calls/syntax/expression_parts.h"
#include "calls/syntax/marks.h"
#include "calls/tool.h"

namespace gen::calls {

class CallWriter : ExpressionParts {
 public:
  /// All outlive it.
  CallWriter(const CallFormat& format, std::vector<const Tool*> tools, const MarkWriter& marks,
             const grammar::SchemaOptions& schemas);

  /// Before anything else. kGrammar, naming the tool and a JSON pointer.
  Status write_arguments();
  [[nodiscard]] std::span<const Tool* const> tools() const noexcept { return tools_; }
  [[nodiscard]] grammar::ExprId arguments(size_t tool) const { return arguments_[tool]; }
  /// `without`: the first bytes of the call's first mark, which are left out.
  [[nodiscard]] grammar::ExprId call(size_t tool, size_t without) const;
  /// The calls of a section, one or several, of any tools, and the section's end.
  [[nodiscard]] grammar::ExprId section_rest(size_t without, bool several) const;

  [[nodiscard]] const grammar::SchemaReport& report() const noexcept { return writer_.report(); }
  [[nodiscard]] std::vector<std::string>& relaxed() noexcept { return writer_.relaxed(); }

 private:
  [[nodiscard]] grammar::ExprId any_call(size_t without) const;
  [[nodiscard]] grammar::ExprId name_of(size_t tool) const;
  [[nodiscard]] grammar::ExprId object(size_t tool) const;
  [[nodiscard]] grammar::ExprId part(const Part& part, size_t tool) const;

  const CallFormat& format_;
  const std::vector<const Tool*> tools_;
  const MarkWriter& marks_;
  const grammar::SchemaOptions& schemas_;
  ArgumentWriter writer_;
  std::vector<grammar::ExprId> arguments_;  // by tool
  grammar::ExprId number_ = 0;
  grammar::ExprId id_ = 0;
  grammar::ExprId space_ = 0;
};

}  // namespace gen::calls
