// SPDX-License-Identifier: Apache-2.0
// Forms of conversations for files without a template of their own.
#pragma once

#include <string_view>

#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

struct BuiltinForm {
  std::string_view name;
  std::string_view marks[2];  // special tokens that a vocabulary of this form has; "" for none
  std::string_view source;    // a template
};

/// The form whose marks are tokens of the vocabulary, or null.
const BuiltinForm* recognise_form(const VocabSpec& spec) noexcept;

}  // namespace gen::tokenizer
