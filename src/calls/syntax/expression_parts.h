// SPDX-License-Identifier: Apache-2.0
// ExpressionParts: short names for putting expressions together, for classes that do so.
#pragma once

#include <initializer_list>
#include <span>

#include "grammar/expression/expression.h"

namespace gen::calls {

class ExpressionParts {
 protected:
  explicit ExpressionParts(grammar::Expressions& to) : to_(to) {}

  [[nodiscard]] grammar::ExprId all(std::initializer_list<grammar::ExprId> parts) const {
    return to_.sequence(std::span(parts.begin(), parts.size()));
  }
  [[nodiscard]] grammar::ExprId any(std::initializer_list<grammar::ExprId> parts) const {
    return to_.choice(std::span(parts.begin(), parts.size()));
  }
  [[nodiscard]] grammar::ExprId maybe(grammar::ExprId one) const { return to_.repeat(one, 0, 1); }
  /// In one place, however many lead there.
  [[nodiscard]] grammar::ExprId shared(grammar::ExprId body) const {
    const grammar::RuleId rule = to_.add_rule(true);
    to_.define(rule, body);
    return to_.rule(rule);
  }

  grammar::Expressions& to_;
};

}  // namespace gen::calls
