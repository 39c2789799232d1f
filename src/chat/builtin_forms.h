// SPDX-License-Identifier: Apache-2.0
// Chat formats for files without a template.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace gen::chat {

struct BuiltinForm {
  std::string_view name;
  std::string_view marks[2];  // special tokens that indicate this form; "" for none
  std::string_view source;    // a template
};

/// The form whose marks are tokens of the vocabulary, or null.
const BuiltinForm* recognise_form(const tokenizer::VocabSpec& spec) noexcept;

/// The form of that name, or null.
const BuiltinForm* form_named(std::string_view name) noexcept;
/// The first mark of the form <|word|> in a template's source that is not a special token of the
/// vocabulary, and therefore only text for the model; empty if there is none.
std::string_view missing_mark(const tokenizer::VocabSpec& spec, std::string_view source);
/// Whether a form has that mark.
bool is_form_mark(std::string_view text) noexcept;
/// All names, separated by commas.
std::string form_names();

}  // namespace gen::chat
