// SPDX-License-Identifier: Apache-2.0
// See call_reader.h.
#include "calls/call_reader.h"

#include <algorithm>
#include <utility>

#include "calls/text.h"

namespace gen::calls {
namespace {

constexpr size_t kMaxCallNameBytes = 256;

// functions.NAME:INDEX, as models really write it: NAME alone, functions.NAME,
// functions_NAME_INDEX.
std::string name_of_index(std::string_view text) {
  for (const std::string_view lead : {"functions.", "functions_"}) {
    if (!text.starts_with(lead)) continue;
    text.remove_prefix(lead.size());
    const size_t digits = text.find_last_not_of("0123456789");
    if (lead.back() == '_' && digits != std::string_view::npos && digits + 1 < text.size() &&
        text[digits] == '_') {
      text = text.substr(0, digits);
    }
    break;
  }
  return std::string(text.substr(0, text.rfind(':')));
}

}  // namespace

void CallReader::clear() {
  in_body_ = named_ = name_found_ = false;
  call_ = {};
  tool_ = nullptr;
  object_.reset();
  arguments_.reset();
  back_ = 0;
}

void CallReader::begin(bool behind_mark) {
  clear();
  begin_part(behind_mark ? 1 : 0);
}

void CallReader::begin_body(const std::string& name) {
  clear();
  in_body_ = true;
  found_name(name, {});
  arguments_ = make_argument_reader(format_, tool_, "");
}

CallReader::Next CallReader::begin_part(size_t part) {
  const std::vector<Part>& parts = format_.call;
  part_ = part;
  while (part_ < parts.size() && parts[part_].field == Field::kText &&
         mark_of(parts[part_].text).empty()) {
    ++part_;
  }
  word_.clear();
  if (part_ >= parts.size()) return Next::kDone;
  const Field field = parts[part_].field;
  if (field == Field::kObject) object_.emplace(format_.keys);
  if (field == Field::kArguments) {
    const bool marked = part_ + 1 < parts.size() && parts[part_ + 1].field == Field::kText;
    arguments_ = make_argument_reader(format_, tool_,
                                      marked ? mark_of(parts[part_ + 1].text) : std::string_view());
  }
  return Next::kMore;
}

CallReader::Next CallReader::bad(const char* fault, size_t back) noexcept {
  fault_ = fault;
  back_ = back;
  return Next::kBad;
}

void CallReader::found_name(std::string name, std::string id) {
  named_ = name_found_ = true;
  call_.name = std::move(name);
  call_.id = std::move(id);
  if (tools_ != nullptr) tool_ = find_tool(*tools_, call_.name);
}

CallReader::State CallReader::take(char byte) {
  name_found_ = false;
  more_.clear();
  Next next = Next::kAgain;
  while (next == Next::kAgain) {
    const Field field = in_body_ ? Field::kArguments : format_.call[part_].field;
    next = field == Field::kText        ? take_text(byte)
           : field == Field::kObject    ? take_object(byte)
           : field == Field::kArguments ? take_arguments(byte)
                                        : take_word(byte);
  }
  if (next == Next::kMore) return State::kMore;
  return next == Next::kDone ? State::kDone : State::kBad;
}

CallReader::Next CallReader::take_text(char byte) {
  const std::string_view mark = mark_of(format_.call[part_].text);
  if (word_.empty() && is_blank(byte)) return Next::kMore;
  word_ += byte;
  if (word_ == mark) return begin_part(part_ + 1);
  if (mark.starts_with(word_)) return Next::kMore;
  if (!may_end()) return bad("a mark of a call is missing", word_.size());
  back_ = word_.size();
  return Next::kDone;
}

bool CallReader::may_end() const noexcept {
  if (in_body_ || !named_) return false;
  return std::all_of(format_.call.begin() + static_cast<std::ptrdiff_t>(part_), format_.call.end(),
                     [](const Part& part) { return part.field == Field::kText; });
}

CallReader::Next CallReader::take_word(char byte) {
  const Field field = format_.call[part_].field;
  if (word_.empty() && is_blank(byte)) return Next::kMore;
  const bool fits = is_name_byte(byte) || (field != Field::kName && byte == ':');
  if (fits && word_.size() < kMaxCallNameBytes) {
    word_ += byte;
    return Next::kMore;
  }
  if (word_.empty() || fits) {
    return bad(field == Field::kId ? "a call's id is missing" : "a call's name is missing", 1);
  }
  if (field == Field::kId) {
    call_.id = word_;
  } else if (field == Field::kIndexedName) {
    std::string name = name_of_index(word_);
    if (name.empty()) return bad("a call's name is missing", 1);
    found_name(std::move(name), word_);
  } else {
    found_name(word_, call_.id);
  }
  return begin_part(part_ + 1) == Next::kMore ? Next::kAgain : bad("a call has no arguments", 1);
}

CallReader::Next CallReader::take_object(char byte) {
  const ObjectReader::State state = object_->take(byte, &more_);
  if (state == ObjectReader::State::kBad) return bad(object_->fault(), 1);
  if (!named_ && !object_->name().empty()) found_name(object_->name(), {});
  call_.arguments += more_;
  if (state != ObjectReader::State::kDone) return Next::kMore;
  call_.id = object_->id();
  return begin_part(part_ + 1);
}

CallReader::Next CallReader::take_arguments(char byte) {
  const ArgumentReader::State state = arguments_->take(byte, &more_);
  if (state == ArgumentReader::State::kBad) return bad(arguments_->fault(), 1);
  call_.arguments += more_;
  if (state != ArgumentReader::State::kDone) return Next::kMore;
  if (in_body_) return Next::kDone;
  const bool took_mark = format_.syntax == Syntax::kTagged || format_.syntax == Syntax::kPython ||
                         format_.syntax == Syntax::kNested;
  return begin_part(part_ + (took_mark ? 2 : 1));
}

}  // namespace gen::calls
