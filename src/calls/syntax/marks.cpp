// SPDX-License-Identifier: Apache-2.0
// See marks.h.
#include "calls/syntax/marks.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gen::calls {

using grammar::ExprId;

MarkWriter::MarkWriter(const tokenizer::VocabSpec& spec, grammar::Expressions& to) : to_(to) {
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool ends = id == spec.eos || id == spec.eot || id == spec.eom;
    const bool control = i < spec.types.size() && spec.types[i] == tokenizer::TokenType::kControl;
    if ((!ends && !control) || spec.tokens[i].empty()) continue;
    tokens_.try_emplace(spec.tokens[i], id);
    longest_ = std::max(longest_, spec.tokens[i].size());
  }
}

// The longest of those that begin first, as tokenizers split texts.
MarkWriter::Found MarkWriter::find(std::string_view mark, size_t from) const {
  for (size_t begin = from; begin < mark.size(); ++begin) {
    for (size_t length = std::min(longest_, mark.size() - begin); length > 0; --length) {
      const auto known = tokens_.find(std::string(mark.substr(begin, length)));
      if (known != tokens_.end()) return {begin, length, known->second};
    }
  }
  return {};
}

size_t MarkWriter::first_token(std::string_view mark) const { return find(mark, 0).begin; }

ExprId MarkWriter::text(std::string_view mark) const {
  std::vector<ExprId> parts;
  for (size_t at = 0; at < mark.size();) {
    const Found next = find(mark, at);
    if (next.length == 0) {
      parts.push_back(to_.literal(mark.substr(at)));
      break;
    }
    parts.push_back(to_.literal(mark.substr(at, next.begin - at)));
    grammar::TokenTerm term;
    term.id = next.id;
    parts.push_back(to_.token(std::move(term)));
    at = next.begin + next.length;
  }
  return to_.sequence(parts);
}

}  // namespace gen::calls
