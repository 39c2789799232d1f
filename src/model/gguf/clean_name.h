// SPDX-License-Identifier: Apache-2.0
// Names in a GGUF file (metadata keys, tensors) and their form in one-line messages.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace gen::gguf {

/// Whether a name can stand in a message and in a C string: UTF-8 without control characters.
inline bool is_clean_name(std::string_view name) noexcept {
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  };
  return std::none_of(name.begin(), name.end(), is_control) && utf8_valid(name);
}

/// For "%.*s": the length at which a name is cut, on a character border, so that the rest of the
/// message survives.
inline int shown_length(std::string_view name) noexcept {
  constexpr size_t kShown = 120;
  return static_cast<int>(name.size() <= kShown ? name.size()
                                                : utf8_complete_prefix(name.substr(0, kShown)));
}

}  // namespace gen::gguf
