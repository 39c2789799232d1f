// SPDX-License-Identifier: Apache-2.0
// JsonForm: brackets, names and separators of JSON, with words and strings that may be others.
#pragma once

#include <memory>
#include <string>

#include "grammar/schema/schema.h"
#include "grammar/schema/string_texts.h"
#include "grammar/schema/value_form.h"

namespace gen::calls {

class JsonForm : public grammar::ValueForm {
 public:
  /// Both outlive it.
  JsonForm(grammar::Expressions& to, const grammar::SchemaOptions& options);
  [[nodiscard]] Inside inside_array() const override { return {this, false}; }
  [[nodiscard]] Inside inside_object(const std::string* /*name*/) const override {
    return {this, false};
  }
  Result<grammar::Dfa> writable(const grammar::Dfa& strings) const override { return strings; }
  Result<grammar::ExprId> text_of(const grammar::Dfa& strings, uint32_t most) const override;
  Result<grammar::ExprId> member(const std::string& name, grammar::ExprId value) const override;
  Result<grammar::ExprId> members(const grammar::Dfa& names, grammar::ExprId value) const override;

 protected:
  void set_words(const char* null, const char* no, const char* yes);
  [[nodiscard]] grammar::ExprId all(std::initializer_list<grammar::ExprId> parts) const {
    return to_.sequence(std::span(parts.begin(), parts.size()));
  }
  grammar::Expressions& to_;
  const grammar::SchemaOptions& options_;

 private:
  grammar::ExprId colon_;
  std::unique_ptr<grammar::StringTexts> texts_;
};

}  // namespace gen::calls
