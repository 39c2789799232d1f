// SPDX-License-Identifier: Apache-2.0
// Options by name: one table per options object serves *_set and *_describe, so that a new option
// is one row. Values are parsed here; ranges are checked by the same functions as the typed setters
// use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/boundary.h"

namespace gen::api {

/// Whole numbers and finite or infinite decimals, the whole text and nothing else.
Result<int64_t> parse_int(const char* text);
Result<uint64_t> parse_uint(const char* text);
Result<double> parse_double(const char* text);
/// "0"/"1", "false"/"true".
Result<bool> parse_bool(const char* text);

/// Text of a decimal that parses back to the same number.
std::string number_text(double value);

template <typename T>
struct OptionRow {
  const char* key;
  const char* type;     // "int", "float", "bool", "string"
  const char* range;    // for people
  const char* initial;  // default value as text
  Status (*set)(T& object, const char* value);
  std::string (*get)(const T& object);
};

/// What a setter gave, with the key in its message; parsing knows only the value.
Status named(const char* key, Status status);

/// For a key that is none of the known ones.
Status unknown_option(const char* key, std::span<const std::string_view> known);

/// `others` are keys that were looked for before, for the message.
template <typename T>
Status set_by_name(std::span<const OptionRow<T>> rows, T& object, const char* key,
                   const char* value, std::vector<std::string_view> others = {}) {
  for (const OptionRow<T>& row : rows) {
    if (std::string_view(row.key) == key) return named(row.key, row.set(object, value));
  }
  for (const OptionRow<T>& row : rows) others.emplace_back(row.key);
  return unknown_option(key, others);
}

/// What *_describe says of an option.
struct OptionText {
  std::string key, type, range, initial, value;
  std::string off;   // values that do nothing; empty: not said
  std::string help;  // empty: not said
};

/// As JSON.
std::string describe_rows(std::span<const OptionText> rows);

template <typename T>
std::string describe_options(std::span<const OptionRow<T>> rows, const T& object) {
  std::vector<OptionText> texts;
  for (const OptionRow<T>& row : rows) {
    texts.push_back({row.key, row.type, row.range, row.initial, row.get(object), "", ""});
  }
  return describe_rows(texts);
}

}  // namespace gen::api
