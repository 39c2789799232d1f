// SPDX-License-Identifier: Apache-2.0
// ArgumentWriter: the arguments of a tool's calls in the syntax of a format, as expressions. Every
// keyword of the schema is exact, as in grammar/schema/schema.h, with these exceptions in syntaxes
// other than JSON, which are reported: members that the schema does not list may come twice (or,
// as nested tags, not at all), and uniqueItems and the format regex have no effect where they take
// more than an automaton. Members that the schema does not list are allowed only if it says so, or
// lists none. Members whose names a syntax cannot write are left out. Strings without quotes never
// hold the mark behind them; JSON between such marks may, and is read otherwise if another argument
// or the end of the call seems to follow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "calls/call_format.h"
#include "calls/syntax/marks.h"
#include "calls/tool.h"
#include "grammar/schema/schema.h"

namespace gen::calls {

class ArgumentWriter {
 public:
  /// All outlive it.
  ArgumentWriter(const CallFormat& format, const MarkWriter& marks,
                 const grammar::SchemaOptions& options)
      : format_(format), marks_(marks), options_(options) {}

  /// kGrammar, naming the tool and a JSON pointer.
  Result<grammar::ExprId> write(const Tool& tool);
  /// Of all tools so far.
  [[nodiscard]] const grammar::SchemaReport& report() const noexcept { return report_; }
  [[nodiscard]] std::vector<std::string>& relaxed() noexcept { return relaxed_; }

 private:
  [[nodiscard]] std::unique_ptr<grammar::ValueForm> form_of(const Tool& tool) const;

  const CallFormat& format_;
  const MarkWriter& marks_;
  const grammar::SchemaOptions& options_;
  grammar::SchemaReport report_;
  std::vector<std::string> relaxed_;
};

}  // namespace gen::calls
