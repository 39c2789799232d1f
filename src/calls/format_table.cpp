// SPDX-License-Identifier: Apache-2.0
// See format_table.h.
#include "calls/format_table.h"

#include <algorithm>

#include "calls/formats/formats.h"

namespace gen::calls {
namespace {

using Table = std::vector<std::shared_ptr<const CallFormat>>;

// Templates are compared in this order, so what has more signs comes before what has fewer of them.
Table make_table() {
  Table table;
  for (CallFormat (*const make)() : {
           qwen_coder_format,
           hermes_format,
           generic_json_format,
       }) {
    table.push_back(std::make_shared<const CallFormat>(make()));
  }
  return table;
}

const Table& table() {
  static const Table made = make_table();
  return made;
}

}  // namespace

std::span<const std::shared_ptr<const CallFormat>> call_formats() { return table(); }

std::shared_ptr<const CallFormat> format_named(std::string_view name) {
  for (const auto& format : table()) {
    if (format->name == name) return format;
  }
  return nullptr;
}

std::string format_names() {
  std::string names;
  for (const auto& format : table()) names += (names.empty() ? "" : ", ") + format->name;
  return names;
}

std::shared_ptr<const CallFormat> format_of_source(std::string_view source) {
  for (const auto& format : table()) {
    const bool all = std::all_of(format->signs.begin(), format->signs.end(), [&](const auto& sign) {
      return source.find(sign) != std::string_view::npos;
    });
    if (all && !format->signs.empty()) return format;
  }
  return nullptr;
}

const std::shared_ptr<const CallFormat>& generic_format() { return table().back(); }

}  // namespace gen::calls
