// SPDX-License-Identifier: Apache-2.0
// See type_pattern.h.
#include "model/type_pattern.h"

#include <algorithm>

#include "quant/format.h"

namespace gen::model {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// What fits into a message.
int shown(std::string_view text) noexcept {
  return static_cast<int>(std::min(text.size(), size_t{100}));
}

const quant::Format* format_named(std::string_view name) noexcept {
  for (const quant::Format& format : quant::formats()) {
    if (same_type_name(dtype_name(format.type), name)) return &format;
  }
  return nullptr;
}

std::string type_names() {
  std::string names;
  for (const quant::Format& format : quant::formats()) {
    names.append(names.empty() ? "" : ", ").append(dtype_name(format.type));
  }
  return names;
}

}  // namespace

bool same_type_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// The last '*' alone is tried again, so that the
// time is at most the product of the lengths.
bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  size_t p = 0;
  size_t t = 0;
  size_t star = pattern.npos;
  size_t after = 0;  // where the text of the last '*' ends
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<TypePattern>> parse_type_patterns(std::string_view text) {
  std::vector<TypePattern> patterns;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = part.rfind('=');
    const std::string_view pattern = trimmed(part.substr(0, std::min(equals, part.size())));
    if (equals == part.npos || pattern.empty()) {
      return error(Code::kInvalidArgument, "\"%.*s\" is not PATTERN=TYPE", shown(part),
                   part.data());
    }
    const std::string_view name = trimmed(part.substr(equals + 1));
    const quant::Format* const format = format_named(name);
    if (format == nullptr) {
      return error(Code::kInvalidArgument, "\"%.*s\" is not one of %s", shown(name), name.data(),
                   type_names().c_str());
    }
    patterns.push_back({std::string(pattern), format->type});
  }
  return patterns;
}

}  // namespace gen::model
