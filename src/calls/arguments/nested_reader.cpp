// SPDX-License-Identifier: Apache-2.0
// Arguments as nested tags, see argument_reader.h.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/mark_reader.h"
#include "calls/arguments/value_writer.h"

namespace gen::calls {
namespace {

using grammar::JsonType;
using grammar::JsonValue;

constexpr std::string_view kItem = "item";

const JsonValue* member(const JsonValue* value, std::string_view name) {
  return value != nullptr && value->is(JsonType::kObject) ? value->find(name) : nullptr;
}

bool has_type(const JsonValue* schema, std::string_view type) {
  const JsonValue* const said = member(schema, "type");
  return said != nullptr && said->text == type;
}

class NestedReader final : public ArgumentReader {
 public:
  NestedReader(const ArgumentMarks& marks, const Tool* tool, std::string_view end)
      : tool_(tool), open_(marks.lead + "<"), end_(mark_of(end)) {
    frames_.push_back({.tag = {}, .content = Content::kObject});
    frames_.back().schema = tool == nullptr ? nullptr : &tool->schema;
  }

  State take(char byte, std::string* json) override {
    Frame& frame = frames_.back();
    if (frame.content == Content::kText) return text(byte, json);
    if (held_.size() == spaces_ && is_blank(byte)) {
      held_ += byte;
      ++spaces_;
      return State::kMore;
    }
    held_ += byte;
    const std::string_view tag = std::string_view(held_).substr(spaces_);
    const bool begins = std::string_view(open_).starts_with(tag.substr(0, open_.size()));
    if (!begins || tag.size() > kMaxTag) return no_tag(json);
    if (byte != '>' || tag.size() <= open_.size()) return State::kMore;
    const std::string_view inside = tag.substr(open_.size(), tag.size() - open_.size() - 1);
    if (inside.starts_with('/')) return close(inside.substr(1), json);
    return open(std::string(inside), json);
  }

 private:
  static constexpr size_t kMaxTag = 1024;
  enum class Content : uint8_t { kOpen, kText, kObject, kArray };

  struct Frame {
    std::string tag;
    Content content = Content::kOpen;
    std::unordered_set<std::string> names = {};
    size_t count = 0;
    const JsonValue* schema = nullptr;
  };

  // What was read is no tag, therefore text if the element can have some.
  State no_tag(std::string* json) {
    if (frames_.back().content != Content::kOpen) return bad("a tag is expected");
    frames_.back().content = Content::kText;
    value_.begin(kind());
    std::string bytes;
    bytes.swap(held_);
    spaces_ = 0;
    for (const char byte : bytes) {
      if (const State state = text(byte, json); state != State::kMore) return state;
    }
    return State::kMore;
  }

  ValueKind kind() const {
    const JsonValue* const schema = frames_.back().schema;
    return schema == nullptr ? ValueKind::kUnknown : value_kind(tool_->schema, *schema);
  }

  State text(char byte, std::string* json) {
    held_ += byte;
    const std::string& tag = frames_.back().tag;
    const auto closes = [&](std::string_view part) {
      const std::string_view rest = part.substr(std::min(part.size(), open_.size()));
      if (!std::string_view(open_).starts_with(part.substr(0, open_.size()))) return false;
      return ("/" + tag + ">").starts_with(rest);
    };
    while (!held_.empty() && (held_[0] != open_[0] || !closes(held_))) {
      if (!value_.put(held_.front(), json)) return bad("not UTF-8");
      held_.erase(0, 1);
    }
    if (held_.size() != open_.size() + tag.size() + 2) return State::kMore;
    if (!value_.end(json)) return bad("not UTF-8");
    return pop();
  }

  State pop() {
    held_.clear();
    spaces_ = 0;
    frames_.pop_back();
    return State::kMore;
  }

  State close(std::string_view name, std::string* json) {
    Frame& frame = frames_.back();
    if (frames_.size() == 1) {
      if (std::string_view(held_).substr(spaces_) != end_) return bad("a tag without its begin");
      *json += frame.count == 0 ? "{}" : "}";
      return State::kDone;
    }
    if (name != frame.tag) {
      return frame.content == Content::kOpen ? no_tag(json) : bad("a tag without its begin");
    }
    if (frame.content == Content::kOpen) {
      empty(json);
    } else {
      *json += frame.content == Content::kArray ? ']' : '}';
    }
    return pop();
  }

  // An element with nothing but white space.
  void empty(std::string* json) {
    const JsonValue* const schema = frames_.back().schema;
    if (kind() == ValueKind::kOther) {
      *json += has_type(schema, "array") ? "[]" : has_type(schema, "object") ? "{}" : "null";
      return;
    }
    TextWriter writer;
    *json += '"';
    writer.put(std::string_view(held_).substr(0, spaces_), json);
    *json += '"';
  }

  State open(std::string name, std::string* json) {
    if (frames_.size() > kMaxArgumentDepth) return bad("nested too deep");
    Frame& frame = frames_.back();
    std::string quoted;
    TextWriter writer;
    if (!writer.put(name, &quoted) || !writer.whole()) return bad("not UTF-8");
    if (quoted.empty()) return bad("a tag without a name");
    if (frame.content == Content::kOpen) {
      const bool array = name == kItem && !has_type(frame.schema, "object");
      frame.content = array ? Content::kArray : Content::kObject;
      if (array) *json += '[';
    }
    const JsonValue* schema = nullptr;
    if (frame.content == Content::kArray) {
      if (name != kItem) return bad("an array has elements that are no items");
      if (frame.count > 0) *json += ", ";
      schema = member(frame.schema, "items");
    } else {
      if (!frame.names.insert(quoted).second) return bad("a name comes twice");
      *json += (frame.count == 0 ? "{\"" : ", \"") + quoted + "\": ";
      schema = member(member(frame.schema, "properties"), name);
    }
    ++frame.count;
    held_.clear();
    spaces_ = 0;
    frames_.push_back({.tag = std::move(name)});
    frames_.back().schema = schema;
    if (kind() == ValueKind::kText) {
      frames_.back().content = Content::kText;
      value_.begin(ValueKind::kText);
    }
    return State::kMore;
  }

  const Tool* tool_;
  std::string open_;
  std::string end_;
  std::vector<Frame> frames_;
  std::string held_;  // white space and what may be a tag
  size_t spaces_ = 0;
  ValueWriter value_;
};

}  // namespace

std::unique_ptr<ArgumentReader> make_nested_reader(const ArgumentMarks& marks, const Tool* tool,
                                                   std::string_view end) {
  return std::make_unique<NestedReader>(marks, tool, end);
}

}  // namespace gen::calls
