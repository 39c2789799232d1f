// SPDX-License-Identifier: Apache-2.0
// Texts with tags, compared to find where marks begin and end.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gen::calls::derivation {

inline constexpr size_t kNowhere = std::string_view::npos;

struct Span {
  size_t begin = kNowhere;
  size_t end = kNowhere;
  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(begin, end - begin);
  }
};

bool is_blank_text(std::string_view text) noexcept;
/// What both begin with, whole tags only.
std::string_view common_begin(std::string_view a, std::string_view b) noexcept;
/// What both end with. It begins with a tag, or at the end of one.
std::string_view common_end(std::string_view a, std::string_view b) noexcept;
/// Back over a word that may be a mark, but not over layout and tags.
size_t before_word(std::string_view text, size_t at) noexcept;
/// The JSON object or array of which `begin` is the first bracket.
std::optional<Span> json_at(std::string_view text, size_t begin);

}  // namespace gen::calls::derivation
