// SPDX-License-Identifier: Apache-2.0
// Options by name: one table per options object serves *_set and *_describe, so that a new option
// is one row. Values are parsed here; ranges are checked by the same functions as the typed setters
// use.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "api/boundary.h"
#include "api/json_text.h"

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

template <typename T>
Status set_by_name(std::span<const OptionRow<T>> rows, T& object, const char* key,
                   const char* value) {
  for (const OptionRow<T>& row : rows) {
    if (std::string_view(row.key) == key) return row.set(object, value);
  }
  return error(Code::kInvalidArgument, "unknown option %.200s", key);
}

template <typename T>
std::string describe_options(std::span<const OptionRow<T>> rows, const T& object) {
  std::string out = "[";
  for (const OptionRow<T>& row : rows) {
    if (out.size() > 1) out += ',';
    out += "{\"key\":" + json_quote(row.key) + ",\"type\":" + json_quote(row.type) +
           ",\"range\":" + json_quote(row.range) + ",\"default\":" + json_quote(row.initial) +
           ",\"value\":" + json_quote(row.get(object)) + "}";
  }
  return out + "]";
}

}  // namespace gen::api
