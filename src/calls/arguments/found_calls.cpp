// SPDX-License-Identifier: Apache-2.0
// See found_calls.h.
#include "calls/arguments/found_calls.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gen::calls {
namespace {

using State = JsonScanner::State;

constexpr std::array<std::string_view, 9> kMembers = {
    "name", "arguments", "tool", "parameters", "id", "type", "function", "tool_calls", "index"};

}  // namespace

State FoundCalls::take(char byte, const std::string& text) {
  const size_t at = text.size() - 1;
  const size_t depth = scanner_.depth();
  const State state = scanner_.take(byte);
  if (state == State::kBad) return state;
  if (in_scalar_ && scanner_.scalar_ended()) {
    in_scalar_ = false;
    const bool quoted = text[scalar_] == '"';
    end_value(quoted ? Ended::kText : Ended::kScalar, {scalar_, quoted ? at + 1 : at}, text);
  }
  if (scanner_.name_ended()) frames_.back().key = scanner_.name();
  if (scanner_.name_ended() && frames_.size() == 1) {
    const std::string& name = frames_.back().key;
    may_be_call_ &= name == keys_.name || name == keys_.arguments || name == keys_.id ||
                    std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end();
  }
  if (scanner_.depth() > depth) {
    Frame frame;
    frame.begin = at;
    frame.first = regions_.size();
    frame.object = byte == '{';
    frames_.push_back(std::move(frame));
  } else if (scanner_.depth() < depth) {
    const Frame frame = std::move(frames_.back());
    frames_.pop_back();
    const Ended kind = end_frame(frame, at + 1, text);
    if (!frames_.empty()) end_value(kind, {frame.begin, at + 1}, text);
  } else if (scanner_.value_began()) {
    scalar_ = at;
    in_scalar_ = true;
  }
  return state;
}

void FoundCalls::end_value(Ended kind, Range range, const std::string& text) {
  Frame& frame = frames_.back();
  ++frame.values;
  if (!frame.object) {
    frame.all_calls &= kind == Ended::kCalls || kind == Ended::kFunction;
    return;
  }
  const std::string& key = frame.key;
  const auto word = [&] {
    return decode_json_string(
        std::string_view(text).substr(range.begin + 1, range.end - range.begin - 2));
  };
  const bool object = kind == Ended::kObject || kind == Ended::kCalls || kind == Ended::kFunction;
  if (kind == Ended::kText && (key == "name" || key == keys_.name)) frame.name = word();
  if (kind == Ended::kText && key == "tool") frame.tool = word();
  if (kind == Ended::kText && (key == "id" || key == keys_.id)) frame.id = word();
  if (object && (key == "arguments" || key == keys_.arguments)) frame.arguments = range;
  if (object && key == "parameters") frame.parameters = range;
  if (kind == Ended::kText && key == "arguments") {
    frame.arguments = range;
    frame.arguments_are_text = true;
  }
  if (key == "tool_calls" && kind == Ended::kCalls) frame.wraps_list = true;
  if (key == "function" && kind == Ended::kFunction) frame.wraps_function = true;
}

// The calls inside an object that is itself a call are part of its arguments; those inside any
// other that is no wrapper are text.
FoundCalls::Ended FoundCalls::end_frame(const Frame& frame, size_t end, const std::string& text) {
  const auto drop = [&] { regions_.resize(frame.first); };
  if (!frame.object) {
    if (frame.values == 0 || !frame.all_calls) {
      drop();
      return Ended::kArray;
    }
    Region whole{frame.begin, end, {}};
    for (size_t i = frame.first; i < regions_.size(); ++i) {
      std::move(regions_[i].calls.begin(), regions_[i].calls.end(),
                std::back_inserter(whole.calls));
    }
    drop();
    regions_.push_back(std::move(whole));
    return Ended::kCalls;
  }
  if (frame.wraps_list || frame.wraps_function) {
    // What other members hold is not a call.
    const size_t last = regions_.size();
    if (last == frame.first + 1) {
      Region& region = regions_.back();
      region.begin = frame.begin;
      region.end = end;
      if (frame.wraps_function && region.calls.size() == 1 && region.calls[0].id.empty()) {
        region.calls[0].id = frame.id;
      }
      return Ended::kCalls;
    }
  }
  const bool in_function =
      !frames_.empty() && frames_.back().object && frames_.back().key == "function";
  const auto bytes = [&](Range range) { return text.substr(range.begin, range.end - range.begin); };
  const auto copied = [](const std::string& raw, std::string* json) {
    const auto reader = make_json_reader();
    auto state = ArgumentReader::State::kMore;
    for (const char byte : raw) {
      if (state != ArgumentReader::State::kMore) return false;
      state = reader->take(byte, json);
    }
    return state == ArgumentReader::State::kDone;
  };
  Call call;
  call.id = frame.id;
  std::string raw;
  if (!frame.name.empty() && frame.arguments != Range{} &&
      (!frame.arguments_are_text || in_function)) {
    call.name = frame.name;
    raw = bytes(frame.arguments);
    if (frame.arguments_are_text)
      raw = decode_json_string(std::string_view(raw).substr(1, raw.size() - 2));
  } else if (!frame.tool.empty() && frame.parameters != Range{}) {
    call.name = frame.tool;
    raw = bytes(frame.parameters);
  }
  drop();
  if (call.name.empty() || !copied(raw, &call.arguments)) return Ended::kObject;
  regions_.push_back({frame.begin, end, {std::move(call)}});
  return in_function ? Ended::kFunction : Ended::kCalls;
}

}  // namespace gen::calls
