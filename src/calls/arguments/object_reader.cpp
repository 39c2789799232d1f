// SPDX-License-Identifier: Apache-2.0
// See object_reader.h.
#include "calls/arguments/object_reader.h"

#include <utility>

namespace gen::calls {
namespace {

bool is_object(const std::string& text, std::string* json) {
  const auto reader = make_json_reader();
  auto state = ArgumentReader::State::kMore;
  for (const char byte : text) {
    if (state == ArgumentReader::State::kDone &&
        std::string_view(" \t\r\n").find(byte) != std::string_view::npos) {
      continue;
    }
    if (state != ArgumentReader::State::kMore) return false;
    state = reader->take(byte, json);
  }
  return state == ArgumentReader::State::kDone;
}

}  // namespace

// Finetunes write the members of other families, too.
ObjectReader::Role ObjectReader::role_of(const std::string& key) const noexcept {
  if (keys_.name.empty()) return name_.empty() ? Role::kArguments : Role::kNone;
  if (key == keys_.name || (key == "name" && name_.empty())) return Role::kName;
  if (key == keys_.arguments || key == "arguments" || key == "parameters") {
    return has_arguments_ ? Role::kNone : Role::kArguments;
  }
  if (key == keys_.id || key == "id" || key == "tool_call_id") return Role::kId;
  return Role::kNone;
}

ObjectReader::State ObjectReader::end_scalar() {
  const bool text = value_.front() == '"';
  std::string value =
      text ? decode_json_string(std::string_view(value_).substr(1, value_.size() - 2))
           : std::move(value_);
  value_.clear();
  switch (role_) {
    case Role::kName:
      if (!text || value.empty()) return bad("a call's name is no text");
      name_ = std::move(value);
      break;
    case Role::kId:
      id_ = std::move(value);
      break;
    case Role::kArguments: {
      std::string object;
      if (value == "null" || value.empty()) {
        object = "{}";
      } else if (!text || !is_object(value, &object)) {
        return bad("the arguments of a call are no object");
      }
      arguments_ = std::move(object);
      has_arguments_ = true;
      break;
    }
    case Role::kNone:
      break;
  }
  role_ = Role::kNone;
  return State::kMore;
}

void ObjectReader::pass_on(std::string* json) {
  if (name_.empty()) return;
  *json += arguments_;
  arguments_.clear();
}

ObjectReader::State ObjectReader::take(char byte, std::string* json) {
  const bool in_scalar = !value_.empty();
  const size_t depth = scanner_.depth();
  const State state = scanner_.take(byte);
  if (state == State::kBad) return bad(scanner_.fault());
  if (depth == 0 && byte == '[') return bad("a call is no object");
  if (in_object_) {
    if (scanner_.in_string()) {
      append_string_byte(byte, &arguments_);
    } else {
      arguments_ += byte;
    }
    if (scanner_.depth() == 1) in_object_ = false;
    pass_on(json);
    return State::kMore;
  }
  if (in_scalar) {
    if (scanner_.in_string()) value_ += byte;
    const bool ended = scanner_.scalar_ended();
    if (!ended && !scanner_.in_string()) value_ += byte;
    if (ended && end_scalar() == State::kBad) return State::kBad;
  } else if (depth == 1 && scanner_.name_ended()) {
    role_ = role_of(scanner_.name());
    if (role_ == Role::kArguments && keys_.name.empty()) name_ = scanner_.name();
  } else if (depth == 1 && scanner_.value_began() && role_ != Role::kNone) {
    if (scanner_.depth() == 1) {
      value_ = byte;
    } else if (role_ == Role::kArguments && byte == '{') {
      in_object_ = has_arguments_ = true;
      role_ = Role::kNone;
      arguments_ = byte;
    } else {
      return bad(role_ == Role::kName ? "a call's name is no text"
                                      : "the arguments of a call are no object");
    }
  }
  if (state == State::kDone) {
    if (name_.empty()) return bad("a call has no name");
    if (!has_arguments_) arguments_ = "{}";
  }
  pass_on(json);
  return state;
}

}  // namespace gen::calls
