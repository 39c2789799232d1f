// SPDX-License-Identifier: Apache-2.0
// Option tables: each option is one row. The rows drive the checks of typed setters, *_set by name,
// and *_describe with range, default and help. The help of the `generate` program and
// docs/options.md are made from *_describe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/boundary/boundary.h"

namespace gen::api {

/// Parses a whole number, or a finite or infinite decimal; the text must contain nothing else.
Result<int64_t> parse_int(const char* text);
Result<uint64_t> parse_uint(const char* text);
Result<double> parse_double(const char* text);
/// Parses "0"/"1" or "false"/"true".
Result<bool> parse_bool(const char* text);

/// Decimal text that parses back to the same number.
std::string number_text(double value);
/// "0 to 1", "up to 1000", "0 and up", "any number"; an infinite limit is left out.
std::string range_text(double least, double most);

constexpr int32_t kAnyLeast = std::numeric_limits<int32_t>::min();
constexpr int32_t kAnyMost = std::numeric_limits<int32_t>::max();

/// kInvalidArgument "<what> <value> is outside [<least>, <most>]".
Status check_range(const char* what, int64_t value, int64_t least, int64_t most);

/// A whole number with a range.
template <typename T>
struct WholeOption {
  int32_t& (*field)(T& object);
  int32_t least;
  int32_t most;
  int32_t instead = 0;  // the default that 0 or less stands for, shown in its place
};

/// On or off.
template <typename T>
struct SwitchOption {
  bool& (*field)(T& object);
};

/// An option in any other textual form.
template <typename T>
struct TextOption {
  std::string (*range)();
  Status (*set)(T& object, const char* text);
  std::string (*get)(const T& object);
  const char* type = "string";
};

template <typename T>
struct OptionRow {
  const char* key;
  std::variant<WholeOption<T>, SwitchOption<T>, TextOption<T>> form;
  const char* help;  // one phrase

  /// Implements typed setters of whole numbers.
  Status set(T& object, int64_t value) const {
    const auto& whole = std::get<WholeOption<T>>(form);
    GEN_TRY(check_range(key, value, whole.least, whole.most));
    whole.field(object) = static_cast<int32_t>(value);
    return {};
  }

  Status set_text(T& object, const char* text) const {
    if (const auto* other = std::get_if<TextOption<T>>(&form)) return other->set(object, text);
    if (const auto* on_off = std::get_if<SwitchOption<T>>(&form)) {
      GEN_ASSIGN(on_off->field(object), parse_bool(text));
      return {};
    }
    GEN_ASSIGN(const int64_t value, parse_int(text));
    return set(object, value);
  }

  [[nodiscard]] std::string text(const T& object) const {
    if (const auto* other = std::get_if<TextOption<T>>(&form)) return other->get(object);
    T& read_only = const_cast<T&>(object);
    if (const auto* on_off = std::get_if<SwitchOption<T>>(&form)) {
      return on_off->field(read_only) ? "1" : "0";
    }
    const auto& whole = std::get<WholeOption<T>>(form);
    const int32_t value = whole.field(read_only);
    return std::to_string(value > 0 || whole.instead == 0 ? value : whole.instead);
  }

  [[nodiscard]] const char* type() const {
    if (const auto* other = std::get_if<TextOption<T>>(&form)) return other->type;
    return std::holds_alternative<SwitchOption<T>>(form) ? "bool" : "int";
  }

  [[nodiscard]] std::string range() const {
    if (const auto* other = std::get_if<TextOption<T>>(&form)) return other->range();
    if (std::holds_alternative<SwitchOption<T>>(form)) return "0 or 1";
    const auto& whole = std::get<WholeOption<T>>(form);
    constexpr double kNoBound = std::numeric_limits<double>::infinity();
    return range_text(whole.least == kAnyLeast ? -kNoBound : whole.least,
                      whole.most == kAnyMost ? kNoBound : whole.most);
  }
};

/// Adds the key to a setter's message, since parsing knows only the value.
Status named(const char* key, Status status);

/// The error for an unknown key.
Status unknown_option(const char* key, std::span<const std::string_view> known);

/// `others` are further valid keys, for the message.
template <typename T>
Status set_by_name(std::span<const OptionRow<T>> rows, T& object, const char* key,
                   const char* value, std::vector<std::string_view> others = {}) {
  for (const OptionRow<T>& row : rows) {
    if (std::string_view(row.key) == key) return named(row.key, row.set_text(object, value));
  }
  for (const OptionRow<T>& row : rows) others.emplace_back(row.key);
  return unknown_option(key, others);
}

/// The description of an option in *_describe.
struct OptionText {
  std::string key, type, range, initial, value, help;
  std::string off;  // values that turn it off; empty: not shown
};

/// As JSON.
std::string describe_rows(std::span<const OptionText> rows);

template <typename T>
void add_texts(std::span<const OptionRow<T>> rows, const T& object,
               std::vector<OptionText>* texts) {
  const T initial{};
  for (const OptionRow<T>& row : rows) {
    texts->push_back(
        {row.key, row.type(), row.range(), row.text(initial), row.text(object), row.help, ""});
  }
}

template <typename T>
std::string describe_options(std::span<const OptionRow<T>> rows, const T& object) {
  std::vector<OptionText> texts;
  add_texts(rows, object, &texts);
  return describe_rows(texts);
}

}  // namespace gen::api
