// SPDX-License-Identifier: Apache-2.0
// See value_writer.h.
#include "calls/arguments/value_writer.h"

#include <utility>

#include "calls/arguments/literal_reader.h"
#include "calls/arguments/mark_reader.h"
#include "grammar/schema/json_value.h"

namespace gen::calls {
namespace {

bool may_begin_json(char c) {
  return std::string_view("{[-0123456789tfn").find(c) != std::string_view::npos;
}

// Empty if it is none.
std::string json_of_literal(std::string_view text) {
  LiteralReader reader;
  std::string json;
  for (size_t i = 0; i < text.size(); ++i) {
    const LiteralReader::State state = reader.take(text[i], &json);
    if (state == LiteralReader::State::kMore) continue;
    return state == LiteralReader::State::kDone && i + 1 == text.size() ? json : std::string();
  }
  return reader.take(',', &json) == LiteralReader::State::kBefore ? json : std::string();
}

}  // namespace

void ValueWriter::begin(ValueKind kind) {
  kind_ = kind;
  quoted_ = false;
  blank_ = true;
  raw_.clear();
  writer_ = {};
}

bool ValueWriter::put(char byte, std::string* json) {
  const bool first = blank_ && !is_blank(byte);
  blank_ = blank_ && !first;
  if (kind_ == ValueKind::kUnknown && first && !may_begin_json(byte)) kind_ = ValueKind::kText;
  if (kind_ != ValueKind::kText) {
    raw_ += byte;
    return true;
  }
  if (!std::exchange(quoted_, true)) {
    *json += '"';
    if (!writer_.put(raw_, json)) return false;
  }
  return writer_.put(byte, json);
}

bool ValueWriter::end(std::string* json) {
  if (kind_ == ValueKind::kText && quoted_) {
    *json += '"';
    return writer_.whole();
  }
  const std::string_view text = mark_of(raw_);
  if (auto read = grammar::read_json(text); read.ok()) {
    if (kind_ == ValueKind::kOther || !read->is(grammar::JsonType::kString)) {
      *json += text;
      return true;
    }
  }
  if (kind_ == ValueKind::kOther) {
    if (const std::string mended = json_of_literal(text); !mended.empty()) {
      *json += mended;
      return true;
    }
  }
  *json += '"';
  const bool valid = writer_.put(raw_, json) && writer_.whole();
  *json += '"';
  return valid;
}

}  // namespace gen::calls
