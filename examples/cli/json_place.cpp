// SPDX-License-Identifier: Apache-2.0
#include "json_place.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace cli {
namespace {

struct Open {
  bool object;
  bool in_value = false;  // of an object: after a name and its colon
  size_t index = 0;       // of an array
  std::string name = {};  // of an object: the last one
};

/// The end of the string that begins at `begin`; npos if it is not closed.
size_t end_of_string(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::string name_of(std::string_view string) {
  const auto name = nlohmann::json::parse(string, nullptr, false);
  if (name.is_string()) return name.get<std::string>();
  return std::string(string.substr(1, string.size() - 2));
}

}  // namespace

std::string pointer_at_end(std::string_view text) {
  std::vector<Open> open;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      const size_t end = end_of_string(text, i);
      if (end == std::string_view::npos) break;
      const bool named = !open.empty() && open.back().object && !open.back().in_value;
      if (named) open.back().name = name_of(text.substr(i, end - i));
      i = end;
      continue;
    }
    if (c == '{' || c == '[') {
      open.push_back({c == '{'});
    } else if (!open.empty() && (c == '}' || c == ']')) {
      open.pop_back();
    } else if (!open.empty() && c == ':') {
      open.back().in_value = true;
    } else if (!open.empty() && c == ',') {
      open.back().in_value = false;
      ++open.back().index;
    }
    ++i;
  }
  std::string pointer;
  for (const Open& one : open) {
    if (one.object && !one.in_value) break;  // in a name, or before one
    pointer += '/';
    if (!one.object) {
      pointer += std::to_string(one.index);
      continue;
    }
    for (const char c : one.name) {
      if (c == '~' || c == '/') {
        pointer += c == '~' ? "~0" : "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

}  // namespace cli
