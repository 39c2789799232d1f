// SPDX-License-Identifier: Apache-2.0
// See fields.h.
#include "fields.h"

#include <algorithm>
#include <utility>

namespace server {
namespace {

using nlohmann::json;

ApiError wrong_kind(const std::string& path, const std::string& wanted, const json& value) {
  return bad_request(path, "'" + path + "' must be " + wanted + ", not " + kind_of(value));
}

/// Names in messages are cut short: they are the client's.
std::string shortened(const std::string& name) {
  return name.size() <= 64 ? name : name.substr(0, 64) + "...";
}

}  // namespace

json parse_json(std::string_view text, int max_depth) {
  const auto watch = [max_depth](int depth, json::parse_event_t, json&) {
    if (depth > max_depth) {
      throw bad_request({}, "JSON nested deeper than " + std::to_string(max_depth) + " levels");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& problem) {
    throw bad_request({}, "the body is not JSON: error at byte " + std::to_string(problem.byte),
                      "invalid_json");
  } catch (const json::exception&) {
    throw bad_request({}, "the body has a number that is too large", "invalid_json");
  }
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
  // Above the largest int64 there are only unsigned ones.
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

void Fields::refuse_rest() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      const std::string where = path(shortened(name));
      throw bad_request(where, "unknown field '" + where + "'", "unknown_field");
    }
  }
}

}  // namespace server
