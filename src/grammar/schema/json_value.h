// SPDX-License-Identifier: Apache-2.0
// JSON texts as values, for reading schemas. Numbers keep their text, so that bounds are exact;
// members keep their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grammar/base/building.h"

namespace gen::grammar {

enum class JsonType : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

struct JsonValue {
  JsonType type = JsonType::kNull;
  std::string text;  // of a string, decoded; of a number, as written
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;
  uint32_t order = 0;  // among all schemas of a document, from 1 on (SchemaDocument::number)

  [[nodiscard]] bool is(JsonType wanted) const noexcept { return type == wanted; }
  [[nodiscard]] bool is_boolean() const noexcept {
    return type == JsonType::kTrue || type == JsonType::kFalse;
  }
  /// Null if there is none.
  [[nodiscard]] const JsonValue* find(std::string_view name) const noexcept;

  static JsonValue of_bool(bool value);
  static JsonValue of_string(std::string text);
  static JsonValue of_number(size_t number);
  static JsonValue array(std::vector<JsonValue> items = {});
  static JsonValue object();
  JsonValue& add(std::string name, JsonValue value);
};

/// kGrammar with line and column: RFC 8259 without duplicate names and lone surrogates; or the
/// status of `building`, which may be null, once it has stopped.
Result<JsonValue> read_json(std::string_view text, Building* building = nullptr);

/// Equality of JSON Schema: numbers by value, objects in any order.
bool json_equal(const JsonValue& a, const JsonValue& b);

/// A decimal number: 0.digits * 10^exponent; no digits: 0. No zeros at either end.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
  bool operator==(const Decimal&) const = default;
  /// An ordering key unrelated to the numeric order: by digits, then by exponent.
  [[nodiscard]] auto key() const { return std::tie(digits, exponent, negative); }
  [[nodiscard]] bool is_integer() const noexcept {
    return exponent >= static_cast<int64_t>(digits.size());
  }
};

/// Of the text of a JSON number. kGrammar for an exponent beyond 10^9.
Result<Decimal> decimal_of(std::string_view number);

/// Below, equal, above: -1, 0, 1.
int compare(const Decimal& a, const Decimal& b) noexcept;

}  // namespace gen::grammar
