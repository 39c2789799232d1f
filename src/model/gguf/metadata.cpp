// SPDX-License-Identifier: Apache-2.0
// Lookup and conversion of checked metadata, and its values as text. See metadata.h.
#include "model/gguf/metadata.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/utf8.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/clean_name.h"
#include "model/gguf/metadata_parser.h"

namespace gen::gguf {
namespace {

constexpr const char* kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};

/// A string with its length in front.
std::string_view load_string(const std::byte* from) noexcept {
  return {reinterpret_cast<const char*>(from + sizeof(uint64_t)),
          static_cast<size_t>(load<uint64_t>(from))};
}

std::string_view take_string(const std::byte** from) noexcept {
  const std::string_view text = load_string(*from);
  *from += sizeof(uint64_t) + text.size();
  return text;
}

template <typename Visit>
bool visit_integer(ValueType type, const std::byte* from, Visit&& visit) {
  switch (type) {
    case ValueType::kU8:
      return visit(load<uint8_t>(from));
    case ValueType::kI8:
      return visit(load<int8_t>(from));
    case ValueType::kU16:
      return visit(load<uint16_t>(from));
    case ValueType::kI16:
      return visit(load<int16_t>(from));
    case ValueType::kU32:
      return visit(load<uint32_t>(from));
    case ValueType::kI32:
      return visit(load<int32_t>(from));
    case ValueType::kU64:
      return visit(load<uint64_t>(from));
    case ValueType::kI64:
      return visit(load<int64_t>(from));
    default:
      return false;
  }
}

bool is_integer(ValueType type) noexcept {
  return scalar_bytes(type) != 0 && type != ValueType::kBool && type != ValueType::kF32 &&
         type != ValueType::kF64;
}

/// What messages call the types that a caller may want.
template <typename T>
struct Wanted;
template <>
struct Wanted<uint32_t> {
  static constexpr const char* kScalar = "u32";
  static constexpr const char* kArray = "array of u32";
};
template <>
struct Wanted<int32_t> {
  static constexpr const char* kScalar = "i32";
  static constexpr const char* kArray = "array of i32";
};
template <>
struct Wanted<uint64_t> {
  static constexpr const char* kScalar = "u64";
};
template <>
struct Wanted<float> {
  static constexpr const char* kScalar = "finite f32";
  static constexpr const char* kArray = "array of finite f32";
};
template <>
struct Wanted<bool> {
  static constexpr const char* kScalar = "bool";
  static constexpr const char* kArray = "array of bool";
};

template <typename T>
bool type_converts(ValueType type) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return type == ValueType::kBool;
  } else if constexpr (std::is_same_v<T, float>) {
    return type == ValueType::kF32 || type == ValueType::kF64;
  } else {
    return is_integer(type);
  }
}

/// False if the value does not fit T. The type must convert.
template <typename T>
bool convert(ValueType type, const std::byte* from, T* out) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    *out = load<uint8_t>(from) != 0;
    return true;
  } else if constexpr (std::is_same_v<T, float>) {
    const double value =
        type == ValueType::kF64 ? load<double>(from) : static_cast<double>(load<float>(from));
    // Also keeps out the doubles that are no floats.
    if (!(std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
    *out = static_cast<float>(value);
    return true;
  } else {
    return visit_integer(type, from, [out](auto value) {
      if (!std::in_range<T>(value)) return false;
      *out = static_cast<T>(value);
      return true;
    });
  }
}

template <typename T>
void append_number(T value, std::string* out) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out->append(digits, end.ptr);
}

void append_scalar(ValueType type, const std::byte* from, std::string* out) {
  if (type == ValueType::kBool) {
    out->append(load<uint8_t>(from) != 0 ? "true" : "false");
  } else if (type == ValueType::kF32) {
    append_number(load<float>(from), out);
  } else if (type == ValueType::kF64) {
    append_number(load<double>(from), out);
  } else {
    visit_integer(type, from, [out](auto value) {
      append_number(
          static_cast<std::conditional_t<std::is_signed_v<decltype(value)>, int64_t, uint64_t>>(
              value),
          out);
      return true;
    });
  }
}

void append_readable(std::string_view text, std::string* out) {
  size_t offset = 0;
  while (offset < text.size()) {
    const uint32_t character = utf8_next(text, &offset);
    utf8_append(character == 0 ? 0xFFFD : character, out);
  }
}

Status missing(std::string_view key, const char* wanted) noexcept {
  return error(Code::kFormat, "metadata '%.*s' is missing (%s wanted)", shown_length(key),
               key.data(), wanted);
}

Status wrong_type(const Value& value, const char* wanted) {
  return error(Code::kFormat, "metadata '%.*s': %s wanted, %s found", shown_length(value.key()),
               value.key().data(), wanted, value.type_text().c_str());
}

Status does_not_fit(const Value& value, uint64_t element, const std::byte* at, const char* wanted) {
  std::string text;
  append_scalar(value.element_type(), at, &text);
  if (value.type() == ValueType::kArray) {
    return error(Code::kFormat, "metadata '%.*s': element %" PRIu64 ", %s, does not fit %s",
                 shown_length(value.key()), value.key().data(), element, text.c_str(), wanted);
  }
  return error(Code::kFormat, "metadata '%.*s': %s does not fit %s", shown_length(value.key()),
               value.key().data(), text.c_str(), wanted);
}

}  // namespace

const char* value_type_name(ValueType type) noexcept {
  const auto index = static_cast<size_t>(type);
  return index < std::size(kTypeNames) ? kTypeNames[index] : "unknown";
}

std::string Value::type_text() const {
  const char* name = value_type_name(element_);
  return type_ == ValueType::kArray ? std::string("array of ") + name : std::string(name);
}

std::string Value::text(size_t max_elements) const {
  std::string out;
  if (type_ == ValueType::kString) {
    append_readable(load_string(data_), &out);
    return out;
  }
  if (type_ != ValueType::kArray) {
    append_scalar(type_, data_, &out);
    return out;
  }
  out += '[';
  const std::byte* at = data_;
  const uint64_t shown = std::min<uint64_t>(count_, max_elements);
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    if (element_ == ValueType::kString) {
      out += '"';
      append_readable(take_string(&at), &out);
      out += '"';
    } else {
      append_scalar(element_, at, &out);
      at += scalar_bytes(element_);
    }
  }
  if (shown < count_) {
    out += shown > 0 ? ", ... " : "... ";
    append_number(count_, &out);
    out += " in all";
  }
  out += ']';
  return out;
}

std::span<const std::byte> Value::bytes() const {
  if (element_ != ValueType::kString) {
    return {data_, static_cast<size_t>(count_ * scalar_bytes(element_))};
  }
  const std::byte* end = data_;
  for (uint64_t i = 0; i < count_; ++i) (void)take_string(&end);
  return {data_, end};
}

const Value* Metadata::find(std::string_view key) const noexcept {
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [this](uint32_t index, std::string_view wanted) { return entries_[index].key() < wanted; });
  if (found == by_key_.end() || entries_[*found].key() != key) return nullptr;
  return &entries_[*found];
}

template <typename T>
Result<T> Metadata::scalar(std::string_view key, std::optional<T> fallback) const {
  constexpr const char* kWanted = Wanted<T>::kScalar;
  const Value* value = find(key);
  if (value == nullptr) {
    if (fallback.has_value()) return *fallback;
    return missing(key, kWanted);
  }
  if (!type_converts<T>(value->type())) return wrong_type(*value, kWanted);
  T out{};
  if (!convert(value->type(), value->data_, &out)) {
    return does_not_fit(*value, 0, value->data_, kWanted);
  }
  return out;
}
template Result<uint32_t> Metadata::scalar(std::string_view, std::optional<uint32_t>) const;
template Result<int32_t> Metadata::scalar(std::string_view, std::optional<int32_t>) const;
template Result<uint64_t> Metadata::scalar(std::string_view, std::optional<uint64_t>) const;
template Result<float> Metadata::scalar(std::string_view, std::optional<float>) const;
template Result<bool> Metadata::scalar(std::string_view, std::optional<bool>) const;

Result<const Value*> Metadata::require_array(std::string_view key, const char* wanted) const {
  const Value* value = find(key);
  if (value == nullptr) return missing(key, wanted);
  if (value->type() != ValueType::kArray) return wrong_type(*value, wanted);
  return value;
}

template <typename T>
Result<std::vector<T>> Metadata::array(std::string_view key) const {
  constexpr const char* kWanted = Wanted<T>::kArray;
  GEN_ASSIGN(const Value* value, require_array(key, kWanted));
  const ValueType type = value->element_type();
  if (!type_converts<T>(type)) return wrong_type(*value, kWanted);
  std::vector<T> out(static_cast<size_t>(value->count()));
  const std::byte* at = value->data_;
  for (size_t i = 0; i < out.size(); ++i, at += scalar_bytes(type)) {
    T element{};
    if (!convert(type, at, &element)) return does_not_fit(*value, i, at, kWanted);
    out[i] = element;
  }
  return out;
}
template Result<std::vector<uint32_t>> Metadata::array(std::string_view) const;
template Result<std::vector<int32_t>> Metadata::array(std::string_view) const;
template Result<std::vector<float>> Metadata::array(std::string_view) const;
template Result<std::vector<bool>> Metadata::array(std::string_view) const;

Result<std::string> Metadata::get_string(std::string_view key,
                                         std::optional<std::string_view> fallback) const {
  const Value* value = find(key);
  if (value == nullptr) {
    if (fallback.has_value()) return std::string(*fallback);
    return missing(key, "string");
  }
  if (value->type() != ValueType::kString) return wrong_type(*value, "string");
  const std::string_view text = load_string(value->data_);
  if (!utf8_valid(text) || text.find('\0') != std::string_view::npos) {
    return error(Code::kFormat, "metadata '%.*s': string is not UTF-8 without NUL",
                 shown_length(key), key.data());
  }
  return std::string(text);
}

Result<std::vector<std::string_view>> Metadata::get_strings(std::string_view key) const {
  GEN_ASSIGN(const Value* value, require_array(key, "array of string"));
  if (value->element_type() != ValueType::kString) return wrong_type(*value, "array of string");
  std::vector<std::string_view> out(static_cast<size_t>(value->count()));
  const std::byte* at = value->data_;
  for (std::string_view& element : out) element = take_string(&at);
  return out;
}

}  // namespace gen::gguf
