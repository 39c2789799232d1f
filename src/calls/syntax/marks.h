// SPDX-License-Identifier: Apache-2.0
// MarkWriter: marks as expressions. What is a control token of the vocabulary is that token,
// anything else is bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "calls/text.h"
#include "grammar/expression/expression.h"
#include "tokenizer/vocab.h"

namespace gen::calls {

class MarkWriter {
 public:
  /// `to` outlives it.
  MarkWriter(const tokenizer::VocabSpec& spec, grammar::Expressions& to);

  [[nodiscard]] grammar::ExprId text(std::string_view mark) const;
  /// Where its first control token begins; npos if it has none.
  [[nodiscard]] size_t first_token(std::string_view mark) const;
  [[nodiscard]] grammar::Expressions& expressions() const noexcept { return to_; }

 private:
  struct Found {
    size_t begin = std::string_view::npos;
    size_t length = 0;
    int32_t id = -1;
  };
  [[nodiscard]] Found find(std::string_view mark, size_t from) const;

  grammar::Expressions& to_;
  std::unordered_map<std::string, int32_t> tokens_;
  size_t longest_ = 0;
};

}  // namespace gen::calls
