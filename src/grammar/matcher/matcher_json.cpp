// SPDX-License-Identifier: Apache-2.0
// The rules of JSON texts beyond the grammar: a matcher refuses duplicate names. Few tokens can end
// such a name, so they are removed from the grammar's mask one by one. ItemSearch handles duplicate
// items.
#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "grammar/mask/json_tokens.h"
#include "grammar/matcher/matcher.h"

namespace gen::grammar {
namespace {

using In = JsonState::In;

void remove(int32_t token, std::span<uint64_t> bits) {
  bits[static_cast<size_t>(token) / 64] &= ~(uint64_t{1} << (token % 64));
}

bool has_token(int32_t token, std::span<const uint64_t> bits) {
  return (bits[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
}

}  // namespace

void Matcher::forbid(std::span<uint64_t> bits) const {
  const bool named = std::any_of(items().begin(), items().end(), [&](const Item& item) {
    return !grammar_->machines().tokens(item.state).empty();
  });
  if (!named) return forbid_texts(bits);
  const std::vector<uint64_t> before(bits.begin(), bits.end());
  forbid_texts(bits);
  allow_named(before, bits);
}

// Tokens that the grammar asks for by name are allowed whatever their texts.
void Matcher::allow_named(std::span<const uint64_t> before, std::span<uint64_t> bits) const {
  for (size_t word = 0; word < bits.size(); ++word) {
    for (uint64_t gone = before[word] & ~bits[word]; gone != 0; gone &= gone - 1) {
      const auto token = static_cast<int32_t>(word * 64) + std::countr_zero(gone);
      const bool asked = std::any_of(items().begin(), items().end(), [&](const Item& item) {
        const auto edges = grammar_->machines().tokens(item.state);
        return std::any_of(edges.begin(), edges.end(), [&](const TokenEdge& edge) {
          return grammar_->matches(edge.term, token);
        });
      });
      if (asked) bits[word] |= gone & (~gone + 1);
    }
  }
}

void Matcher::forbid_texts(std::span<uint64_t> bits) const {
  const JsonState& at = place();
  if (differ_ != nullptr) {
    for (const int32_t token : json_->special()) remove(token, bits);
    read_on_from_here();
    differ_->forbid(grammar_->vocabulary(), past_->lists, items(), reader_, bits);
  }
  if (at.off) return;
  if (at.in == In::kNothing) {
    forbid_refused(json_->two(), bits);
  } else if (!at.name) {
    forbid_refused(json_->three(), bits);
  } else if (at.in != In::kString || at.high != 0) {
    forbid_refused(json_->quoted(), bits);
  } else {
    forbid_taken_names(bits);
    forbid_refused(json_->escaped(), bits);
    forbid_refused(json_->three(), bits);
  }
}

// Removes the tokens that the reader refuses.
void Matcher::forbid_refused(std::span<const int32_t> tokens, std::span<uint64_t> bits) const {
  for (const int32_t token : tokens) {
    if (!has_token(token, bits)) continue;
    read_on_from_here();
    for (const char c : grammar_->vocabulary().bytes(token)) {
      if (reader_.read(static_cast<uint8_t>(c)) != JsonReader::kRefused) continue;
      remove(token, bits);
      break;
    }
  }
}

// Removes the tokens that complete a duplicate name.
void Matcher::forbid_taken_names(std::span<uint64_t> bits) const {
  const JsonText& text = past_->json;
  const JsonState& at = place();
  const std::string_view begun = text.bytes().substr(at.begin, at.n_bytes - at.begin);
  for (uint32_t i = at.newest; i != JsonState::kNone; i = text.entry(i).before) {
    const std::string_view name = text.bytes().substr(text.entry(i).begin, text.entry(i).length);
    if (!name.starts_with(begun)) continue;
    json_->for_closing(name.substr(begun.size()), [&](int32_t token) { remove(token, bits); });
  }
}

}  // namespace gen::grammar
