// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON: text to a value with a limit on nesting, and fields by name with their
// types checked. Every error is an ApiError that names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api_error.h"

namespace server {

/// The value of a text. ApiError 400 for what is not JSON, not UTF-8, has numbers beyond double,
/// nests deeper than `max_depth`, or has more than 65536 objects, arrays and fields or more than
/// `max_values` other values. Takes time proportional to the text.
nlohmann::json parse_json(std::string_view text, int max_depth, size_t max_values);

/// The fields of one object. A field that is null counts as absent.
class Fields {
 public:
  /// `where` names the object in messages ("messages[2]"), empty for the request itself.
  Fields(const nlohmann::json& object, std::string where);

  const nlohmann::json* find(const std::string& name);
  /// Whether the field is present, even if null.
  bool has(const std::string& name) const { return object_.contains(name); }
  std::optional<std::string> text(const std::string& name);
  /// As text(), for what the library takes as a text that ends with a NUL: ApiError if it has one.
  std::optional<std::string> word(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<double> number(const std::string& name);

  /// Marks a field as known and without effect.
  void ignore(const std::string& name) { known_.push_back(name); }
  /// ApiError for a field with any value other than those without effect: null, false, empty, or
  /// one of `harmless`.
  void refuse(const std::string& name, std::initializer_list<nlohmann::json> harmless = {});
  /// ApiError for a field that was not read.
  void refuse_rest() const;
  std::string path(const std::string& name) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

/// ApiError for a text with a NUL.
void refuse_nul(const std::string& path, const std::string& text);

/// name[index].
std::string item(const std::string& name, size_t index);

/// "a string", "an array", … for messages.
std::string kind_of(const nlohmann::json& value);

}  // namespace server
