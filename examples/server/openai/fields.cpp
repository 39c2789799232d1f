// SPDX-License-Identifier: Apache-2.0
// See fields.h.
#include "fields.h"

#include <algorithm>
#include <utility>

namespace server {
namespace {

using nlohmann::json;

/// Objects, arrays and fields of one text. Each takes about a hundred bytes, many times its text.
constexpr size_t kMaxParts = 65536;

ApiError wrong_kind(const std::string& path, const std::string& wanted, const json& value) {
  return bad_request(path, "'" + path + "' must be " + wanted + ", not " + kind_of(value));
}

/// Names from the client are truncated in messages.
std::string shortened(const std::string& name) {
  return name.size() <= 64 ? name : name.substr(0, 64) + "...";
}

bool is_neutral(const json& value) {
  if (value.is_null() || value == false || value == "") return true;
  return (value.is_array() || value.is_object()) && value.empty();
}

/// Refuses invalid JSON and texts beyond a limit.
class Limits : public nlohmann::json_sax<json> {
 public:
  Limits(int max_depth, size_t max_values) : max_depth_(max_depth), max_values_(max_values) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool key(string_t&) override { return count(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const json::exception& problem) override {
    if (dynamic_cast<const json::parse_error*>(&problem) == nullptr) {
      throw bad_request({}, "the body has a number that is too large", "invalid_json");
    }
    throw bad_request({}, "the body is not JSON: error at byte " + std::to_string(position),
                      "invalid_json");
  }

 private:
  bool open() {
    if (++depth_ > max_depth_) {
      throw bad_request({}, "JSON nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    return count();
  }
  bool close() {
    --depth_;
    return true;
  }
  bool count() {
    if (++parts_ > kMaxParts) {
      throw bad_request(
          {}, "JSON of more than " + std::to_string(kMaxParts) + " objects, arrays and fields");
    }
    return true;
  }
  bool value() {
    if (++values_ > max_values_) {
      throw bad_request({}, "JSON of more than " + std::to_string(max_values_) + " values");
    }
    return true;
  }

  const int max_depth_;
  const size_t max_values_;
  int depth_ = 0;
  size_t parts_ = 0;
  size_t values_ = 0;
};

}  // namespace

json parse_json(std::string_view text, int max_depth, size_t max_values) {
  // Checked before any value is made. The parser's own callback could check on the way, but it
  // scans the whole array after each of its elements.
  Limits limits(max_depth, max_values);
  json::sax_parse(text.begin(), text.end(), &limits);
  return json::parse(text.begin(), text.end());
}

void refuse_nul(const std::string& path, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw bad_request(path, "'" + path + "' must not have a NUL");
  }
}

std::string item(const std::string& name, size_t index) {
  return name + "[" + std::to_string(index) + "]";
}

std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    default:
      return "a number";
  }
}

Fields::Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object.is_object()) return;
  if (where_.empty()) throw bad_request({}, "the body must be an object, not " + kind_of(object));
  throw wrong_kind(where_, "an object", object);
}

std::string Fields::path(const std::string& name) const {
  return where_.empty() ? name : where_ + "." + name;
}

const json* Fields::find(const std::string& name) {
  known_.push_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::text(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw wrong_kind(path(name), "a string", *value);
  return value->get<std::string>();
}

std::optional<std::string> Fields::word(const std::string& name) {
  auto value = text(name);
  if (value) refuse_nul(path(name), *value);
  return value;
}

std::optional<bool> Fields::flag(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw wrong_kind(path(name), "true or false", *value);
  return value->get<bool>();
}

std::optional<int64_t> Fields::integer(const std::string& name, int64_t low, int64_t high) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) throw wrong_kind(path(name), "an integer", *value);
  // Integers above the largest int64 are always unsigned.
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX;
  if (huge || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    throw bad_request(path(name), "'" + path(name) + "' is " + value->dump() + ", outside " +
                                      std::to_string(low) + " to " + std::to_string(high));
  }
  return value->get<int64_t>();
}

std::optional<double> Fields::number(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) throw wrong_kind(path(name), "a number", *value);
  return value->get<double>();
}

void Fields::refuse(const std::string& name, std::initializer_list<json> harmless) {
  const json* value = find(name);
  if (value == nullptr || is_neutral(*value)) return;
  if (std::find(harmless.begin(), harmless.end(), *value) != harmless.end()) return;
  throw bad_request(path(name), "'" + path(name) + "' is not supported", "unsupported_parameter");
}

void Fields::refuse_rest() const {
  for (const auto& [name, value] : object_.items()) {
    if (!value.is_null() && std::find(known_.begin(), known_.end(), name) == known_.end()) {
      const std::string where = path(shortened(name));
      throw bad_request(where, "unknown field '" + where + "'", "unknown_field");
    }
  }
}

}  // namespace server
